import { levels } from "../gen/events.js";
import { refuse } from "./error.js";
import { onAbort } from "./signal.js";

/** The most events that wait for a listener; the oldest are dropped first. */
const KEPT = 1024;

/** The importance of an event to people, by its name; two are reported here and not by the core. */
const LEVELS = { ...levels, claims_lost: "warn", lease_data_too_long: "warn" };

/** The listeners of a client. */
export class Listeners {
  #all = new Set();
  #called = new Set();

  /** Hands out an event of the core. */
  tell(event) {
    for (const listener of this.#all) listener.tell(event);
    this.note(event);
  }

  /** Hands out an event that is only for functions. */
  note(event) {
    for (const listener of this.#called) {
      try {
        // A listener may be asynchronous.
        listener({ level: LEVELS[event.event] ?? "debug", ...event })?.catch?.(() => {});
      } catch {
        // A listener's failure changes nothing.
      }
    }
  }

  /** Calls a function with each event, until the returned function is called. */
  call(listener) {
    if (typeof listener !== "function") throw refuse("invalid", "on_event", "`listener` must be a function");
    const own = (event) => listener(event);
    this.#called.add(own);
    return () => void this.#called.delete(own);
  }

  close() {
    for (const listener of this.#all) listener.end();
  }

  /** Returns the events from now on. */
  listen(signal) {
    const queue = [];
    /** The listeners that wait for the next event. */
    const waiting = [];
    let over = false;
    let unheard;
    const listener = {
      tell: (event) => {
        if (waiting.length > 0) waiting.shift()({ done: false, value: event });
        else if (queue.push(event) > KEPT) queue.shift();
      },
      end: () => {
        over = true;
        this.#all.delete(listener);
        unheard?.();
        for (const resolve of waiting.splice(0)) resolve({ done: true, value: undefined });
      },
    };
    this.#all.add(listener);
    if (signal?.aborted) listener.end();
    else if (signal) unheard = onAbort(signal, listener.end);
    return {
      async next() {
        if (queue.length > 0) return { done: false, value: queue.shift() };
        return over ? { done: true, value: undefined } : new Promise((resolve) => waiting.push(resolve));
      },
      async return(value) {
        queue.length = 0;
        listener.end();
        return { done: true, value };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
