// The time of a client. Tests put other clocks and timers in the place of the program's, in part or all of them, for a while or throughout:
// a clock that stands, one that begins at 0, timers that ring only when a test says so. No wait may be without an end by that.

/** A clock that never goes back. `source` gives the program's own clock of the moment. */
export class Clock {
  #source;
  #read;
  #ahead = 0;
  #last = 0;

  constructor(source = () => globalThis.performance) {
    this.#source = source;
  }

  /** The time, in milliseconds. Another clock in the place of the program's goes on where that one was. */
  now() {
    const source = this.#source();
    const told = source.now();
    if ((this.#read ??= source) !== source || told + this.#ahead < this.#last) this.#ahead = this.#last - told;
    this.#read = source;
    return (this.#last = told + this.#ahead);
  }

  /** Notes that a timer has rung for a time: it has come, also where the program's clock stands. */
  reached(time) {
    this.#ahead += Math.max(0, time - this.now());
  }
}

/** The timers at the time of loading: they ring also while a test has others in their place, and after it has put them back. */
const own = { set: globalThis.setTimeout, clear: globalThis.clearTimeout };

/** Calls `work` once, after that many milliseconds by the program's timers or by those of the time of loading. */
export class Alarm {
  #set;

  constructor(work, ms, found = { set: globalThis.setTimeout, clear: globalThis.clearTimeout }, kept = own) {
    const ring = () => {
      this.clear();
      work();
    };
    const timers = found.set === kept.set ? [kept] : [kept, found];
    this.#set = timers.map(({ set, clear }) => ({ timer: set.call(globalThis, ring, ms), clear }));
  }

  clear() {
    for (const { timer, clear } of this.#set) clear.call(globalThis, timer);
  }

  /** Says whether the program waits for it. A page waits for nothing. */
  keep(waits) {
    for (const { timer } of this.#set) timer?.[waits ? "ref" : "unref"]?.();
  }
}

/** A pause, in milliseconds. */
export const pause = (ms) => new Promise((resolve) => new Alarm(resolve, ms));

/** Throws an error after a turn of the event loop: a caller that tries again at once, in a loop, would let nothing else happen. */
export async function lettingOthers(error) {
  await pause(0);
  throw error;
}
