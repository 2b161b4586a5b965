import { StepKind, responseHeaders } from "../gen/hopline_wasm.js";
import { callOf, failed } from "./calls.js";
import { quiet, spoken } from "./error.js";
import { exchange } from "./exchange.js";
import { respelled } from "./names.js";
import { onAbort } from "./signal.js";

/** The longest delay that a timer takes. */
const LONGEST = 2 ** 31 - 1;

/** How long a client that is closed waits for what its store is asked, and then for it to let go and to close, in milliseconds. */
const [CLOSING, LETTING_GO] = [10_000, 2_000];

/**
 * Drives a core: does what its steps say, answers each once, and hands out the results. All that it knows of the API is
 * the contract of `poll`.
 */
export class Driver {
  #core;
  #http;
  #store;
  #serves = false;
  #tell;
  #names = responseHeaders();
  /** By command: whoever waits for its result. */
  #waiting = new Map();
  /** By step: what gives up a request that is out. */
  #out = new Map();
  /** The steps whose calls of the store are out. */
  #asking = new Set();
  /** Nothing is asked of the store any more: it did not answer in time. */
  #isGivenUp = false;
  /** How often claims have ended: what was asked for before that, and has not begun, is not sent. */
  #losses = 0;
  #timer;
  #idle;
  #closed = false;
  /** By command: why the store failed last. The core keeps no errors of its host. */
  #storeErrors = new Map();
  /** Why it failed the command that ended last: others may have waited for the same. */
  #storeError;
  /** By command: what `fetch` threw last. */
  #trouble = new Map();

  constructor(core, http, store, tell) {
    this.#core = core;
    this.#http = http;
    this.#store = store;
    this.#tell = tell;
  }

  /** The store is this client's own from now on. Before that it may be another one's, and is left alone. */
  serve() {
    this.#serves = true;
    this.#store?.onLost?.((names) => this.#lost(names));
  }

  /** Runs a command that `start` starts, and gives its result as the core gives it. */
  run(start, signal) {
    return this.ask((core, _, wait) => wait(start(core)), signal);
  }

  /**
   * Asks the core for something that is answered at once, and does what it wants done then. `question` takes the core, the
   * time, and a function that gives the result of a command: one may end in this very turn, so whoever waits for it must
   * be known before.
   */
  ask(question, signal) {
    let stop;
    const wait = (command) => {
      stop = () => this.#cancel(command);
      const ended = new Promise((resolve, reject) => this.#waiting.set(command, { resolve, reject }));
      if (!signal) return ended;
      const unheard = onAbort(signal, stop);
      return ended.finally(unheard);
    };
    const answer = question(this.#core, this.now(), wait);
    // What was given up by now is not sent first.
    if (signal?.aborted) stop?.();
    this.#pump();
    return answer;
  }

  /** The result of a command that has ended without a word, as the core gives it. */
  take(command) {
    const ended = this.#ended(command);
    this.#pump();
    return ended;
  }

  /** Gives up what is under way, lets go of all names, and waits until everything is in the store. */
  async close() {
    for (const command of [...this.#waiting.keys()]) this.#cancel(command);
    for (const stop of this.#out.values()) stop("aborted");
    const idle = new Promise((resolve) => {
      this.#idle = resolve;
      this.#rest();
    });
    try {
      await patiently(() => idle, CLOSING);
      this.#giveUp();
      // What can't be let go of is free once the store is closed.
      const store = this.#serves ? this.#store : undefined;
      await patiently(() => store?.release(), LETTING_GO).catch(() => {});
      await patiently(() => store?.close?.(), LETTING_GO);
    } finally {
      this.#closed = true;
      clearTimeout(this.#timer);
      this.#core.free();
    }
  }

  /** Answers what the store has not: perhaps it was done, perhaps not. Whoever waits is told what the core makes of that. */
  #giveUp() {
    this.#isGivenUp = true;
    for (const id of this.#asking) failed(this.#core, id, this.now());
    this.#asking.clear();
    this.#pump();
  }

  now() {
    return [Date.now(), performance.now()];
  }

  #cancel(command) {
    this.#out.get(this.#core.cancel(command, ...this.now()))?.("aborted");
    this.#pump();
  }

  #lost(names) {
    if (this.#closed) return;
    this.#losses += 1;
    this.#core.lost(names, ...this.now());
    this.#pump();
  }

  #pump() {
    // What comes of a step that was out for too long comes when nobody is here any more.
    if (this.#closed) return;
    this.#storeError = undefined;
    try {
      while (this.#step());
    } catch (error) {
      // The core does not throw; if it did, nobody would hear of anything any more.
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    }
    this.#rest();
  }

  #step() {
    const core = this.#core;
    switch (core.poll(...this.now())) {
      case StepKind.Store:
        this.#ask(core.id, core.command, callOf(core));
        return true;
      case StepKind.Send:
        this.#send(core.id, core);
        return true;
      case StepKind.Completed: {
        const { command } = core;
        const ended = this.#ended(command);
        this.#waiting.get(command)?.resolve(ended);
        this.#waiting.delete(command);
        return true;
      }
      case StepKind.Notify: {
        const { event } = core;
        if (event.because) quiet((event.because = respelled(event.because)));
        this.#tell(event);
        return true;
      }
      default:
        this.#wait(core.until);
        return false;
    }
  }

  /** The result of a command, and what its host knows of it. */
  #ended(command) {
    const taken = this.#core.take(command);
    this.#storeError = this.#storeErrors.get(command) ?? this.#storeError;
    const ended = { taken, store: this.#storeError, trouble: this.#trouble.get(command) };
    this.#storeErrors.delete(command);
    this.#trouble.delete(command);
    return ended;
  }

  #wait(until) {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (until === undefined) return;
    this.#timer = setTimeout(() => this.#pump(), Math.min(Math.max(Math.ceil(until - performance.now()), 0), LONGEST));
    // What nobody waits for does not keep a program from ending.
    if (this.#waiting.size === 0) this.#timer.unref?.();
  }

  async #ask(id, command, call) {
    if (this.#isGivenUp) return failed(this.#core, id, this.now());
    this.#asking.add(id);
    let tell = failed;
    try {
      tell = await call(this.#store);
    } catch (error) {
      if (command !== undefined) this.#storeErrors.set(command, spoken(error));
    }
    // Whoever closed the client may have answered it meanwhile.
    if (!this.#asking.delete(id)) return;
    tell(this.#core, id, this.now());
    this.#pump();
  }

  async #send(id, step) {
    const { command, head, body, timeoutMs, maxBody, sendBefore } = step;
    const [method, url, ...lines] = head.split("\n");
    const headers = [];
    for (let n = 0; n < lines.length; n += 2) headers.push([lines[n], lines[n + 1]]);
    const { signal, send, stop } = exchange(this.#http, { method, url, headers, body, timeoutMs, maxBody, names: this.#names });
    this.#out.set(id, stop);
    const losses = this.#losses;
    const doubt = await doubted(this.#store, signal, Math.min(timeoutMs, sendBefore - performance.now()));
    let came;
    if (signal.aborted) came = { kind: "aborted", sent: "never" };
    // Nothing is sent under a name that somebody else may have by now.
    else if (doubt || losses !== this.#losses || performance.now() > sendBefore) came = { kind: "late", sent: "never", error: doubt };
    else came = await send();
    this.#out.delete(id);
    if (this.#closed) return;
    if (came.error) this.#trouble.set(command, came.error);
    if (came.kind) this.#core.fail(id, came.kind, came.sent, ...this.now());
    else this.#core.respond(id, came.status, came.headers, came.body, came.truncated, ...this.now());
    this.#pump();
  }

  #rest() {
    if (this.#waiting.size + this.#out.size + this.#asking.size === 0) this.#idle?.();
  }
}

/** Nothing if the claims of a store stand; else the error that says so. A store that can't tell within so many milliseconds vouches for nothing. */
async function doubted(store, signal, ms) {
  if (!store?.vouches) return undefined;
  let cause;
  // Whoever gives up does not wait for the store.
  const given = new Promise((resolve) => onAbort(signal, resolve));
  const stand = await patiently(() => Promise.race([given, store.vouches()]), ms).catch((error) => {
    cause = spoken(error);
  });
  return stand ? undefined : new Error("the store did not vouch for its claims", cause && { cause });
}

/** Waits, but not for ever: gives nothing then. */
async function patiently(work, ms) {
  let timer;
  const enough = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([Promise.resolve().then(work), enough]).finally(() => clearTimeout(timer));
}
