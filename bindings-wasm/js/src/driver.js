import { StepKind, responseHeaders } from "../gen/hopline_wasm.js";
import { quiet } from "./error.js";
import { exchange } from "./exchange.js";

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
  /** The saves that are under way. */
  #saves = new Set();
  #timer;
  #idle;
  /** Why the store failed last: the core keeps no errors of its host. */
  #storeError;
  /** By command: what `fetch` threw last. */
  #trouble = new Map();

  constructor(core, http, store, tell) {
    this.#core = core;
    this.#http = http;
    this.#store = store;
    this.#tell = tell;
  }

  /** Runs a command that `start` starts, and gives its result as the core gives it. */
  run(start, signal) {
    return new Promise((resolve, reject) => {
      const command = start(this.#core);
      const stop = () => this.#cancel(command);
      this.#waiting.set(command, {
        resolve: (result) => (signal?.removeEventListener("abort", stop), resolve(result)),
        reject,
      });
      this.#pump();
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    });
  }

  /** Asks the core for something that is answered at once, and does what it wants done then. */
  ask(question) {
    const answer = question(this.#core, this.now());
    this.#pump();
    return answer;
  }

  /** Waits until nothing is being saved any more. */
  async kept() {
    while (this.#saves.size > 0) await Promise.all(this.#saves);
  }

  /** The store could not be opened: nothing can be kept, and whoever wants that will hear why. */
  storeFailed(error) {
    this.#store = { keep: () => Promise.reject(error), remove: async () => {} };
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
        const waiter = this.#waiting.get(command);
        this.#waiting.delete(command);
        waiter?.resolve({ taken: core.take(command), store: this.#storeError, trouble: this.#trouble.get(command) });
        this.#trouble.delete(command);
        return true;
      }
      case StepKind.Notify: {
        const event = JSON.parse(core.event);
        if (event.because) quiet(event.because);
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
    const saved = this.#save(id, record, data).then(() => {
      this.#saves.delete(saved);
      this.#pump();
    });
    this.#saves.add(saved);
  }

  async #save(id, record, data) {
    let failed = false;
    try {
      await (data === undefined ? this.#store.remove(record) : this.#store.keep(record, data));
    } catch (error) {
      failed = true;
      this.#storeError = error;
    }
    if (failed) this.#core.fail(id, "store", "never", ...this.now());
    else this.#core.saved(id, ...this.now());
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
    const came = await exchange(this.#http, request, abort, this.#names);
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
