import { StepKind, responseHeaders } from "../gen/hopline_wasm.js";
import { quiet } from "./error.js";
import { exchange } from "./exchange.js";
import { respelled } from "./names.js";
import { onAbort } from "./signal.js";

/** The longest delay that a timer takes. */
const LONGEST = 2 ** 31 - 1;

/**
 * Drives a core: does what its steps say, answers each once, and hands out the results. All that it knows of the API is
 * the contract of `poll`.
 */
export class Driver {
  #core;
  #http;
  #store;
  #tell;
  #names = responseHeaders();
  /** By command: whoever waits for its result. */
  #waiting = new Map();
  /** By step: what aborts a request that is out. */
  #out = new Map();
  /** By record: the save that is under way. The core gives one at a time of each. */
  #saves = new Map();
  #timer;
  #idle;
  /** By record: why the store failed last. The core keeps no errors of its host. */
  #storeErrors = new Map();
  /** The record whose save was answered just now. */
  #answered;
  /** By command: what `fetch` threw last. */
  #trouble = new Map();

  constructor(core, http, tell) {
    this.#core = core;
    this.#http = http;
    this.#tell = tell;
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
    /** Those that have not ended: the signal is heard for as long as there is one. */
    const commands = new Set();
    let unheard;
    const wait = (command) => {
      commands.add(command);
      return new Promise((resolve, reject) => this.#waiting.set(command, { resolve, reject })).finally(() => {
        commands.delete(command);
        if (commands.size === 0) unheard?.();
      });
    };
    const stop = () => commands.forEach((command) => this.#cancel(command));
    const answer = question(this.#core, this.now(), wait);
    // What was given up by now is not sent first.
    if (signal?.aborted) stop();
    else if (commands.size > 0 && signal) unheard = onAbort(signal, stop);
    this.#pump();
    return answer;
  }

  /** Waits until the records that are being saved now are quiet: a deletion may come behind the save of the same record. */
  async kept() {
    const records = [...this.#saves.keys()];
    const under = () => records.flatMap((record) => this.#saves.get(record) ?? []);
    while (under().length > 0) await Promise.all(under());
  }

  /** Where records are kept from now on. */
  use(store) {
    this.#store = store;
  }

  /** Gives up what is under way, and waits until everything is in the store. */
  async close() {
    for (const command of [...this.#waiting.keys()]) this.#cancel(command);
    for (const abort of this.#out.values()) abort.abort("aborted");
    await new Promise((resolve) => {
      this.#idle = resolve;
      this.#rest();
    });
    clearTimeout(this.#timer);
    this.#core.free();
  }

  now() {
    return [Date.now(), performance.now()];
  }

  #cancel(command) {
    this.#out.get(this.#core.cancel(command, ...this.now()))?.abort("aborted");
    this.#pump();
  }

  #pump() {
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
      case StepKind.Save:
        this.#keep(core.id, core.record, core.data);
        return true;
      case StepKind.Send:
        this.#send(core.id, core);
        return true;
      case StepKind.Completed: {
        const { command } = core;
        const taken = core.take(command);
        this.#waiting.get(command)?.resolve({ taken, store: this.#storeErrors.get(this.#answered), trouble: this.#trouble.get(command) });
        this.#waiting.delete(command);
        this.#trouble.delete(command);
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

  #wait(until) {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (until === undefined) return;
    this.#timer = setTimeout(() => this.#pump(), Math.min(Math.max(Math.ceil(until - performance.now()), 0), LONGEST));
    // What nobody waits for does not keep a program from ending.
    if (this.#waiting.size === 0) this.#timer.unref?.();
  }

  #keep(id, record, data) {
    const kept = this.#save(record, data).then(({ error, failed }) => {
      this.#saves.delete(record);
      if (failed) this.#storeErrors.set(record, error);
      else if (data !== undefined) this.#storeErrors.delete(record);
      if (failed) this.#core.fail(id, "store", "never", ...this.now());
      else this.#core.saved(id, ...this.now());
      // What ends now for the store's sake ends because of this record.
      this.#answered = record;
      this.#pump();
      this.#answered = undefined;
      if (!failed) this.#storeErrors.delete(record);
    });
    this.#saves.set(record, kept);
  }

  async #save(record, data) {
    try {
      await (data === undefined ? this.#store.remove(record) : this.#store.keep(record, data));
      return {};
    } catch (error) {
      return { error, failed: true };
    }
  }

  async #send(id, step) {
    const { command, method, url, headers, body, timeoutMs, maxBody, sendBefore } = step;
    if (performance.now() > sendBefore) {
      this.#core.fail(id, "late", "never", ...this.now());
      return;
    }
    const pairs = [];
    for (let n = 0; n < headers.length; n += 2) pairs.push([headers[n], headers[n + 1]]);
    const abort = new AbortController();
    this.#out.set(id, abort);
    const request = { method, url, headers: pairs, body, timeoutMs, maxBody };
    // Anything can be thrown, even what breaks when it is looked at.
    const unreadable = () => ({ kind: "other", sent: "maybe", error: new Error("`fetch` threw something that can't be read") });
    const came = await exchange(this.#http, request, abort, this.#names).catch(unreadable);
    this.#out.delete(id);
    if (came.error && this.#waiting.has(command)) this.#trouble.set(command, came.error);
    if (came.kind) this.#core.fail(id, came.kind, came.sent, ...this.now());
    else this.#core.respond(id, came.status, came.headers, came.body, came.truncated, ...this.now());
    this.#pump();
  }

  #rest() {
    if (this.#idle && this.#waiting.size + this.#out.size + this.#saves.size === 0) this.#idle();
  }
}
