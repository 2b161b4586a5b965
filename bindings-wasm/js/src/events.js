import { levels } from "../gen/events.js";
import { refuse } from "./error.js";
import { onAbort } from "./signal.js";

/** How many events wait for a listener that does not come for them; the oldest go first. */
const KEPT = 1024;

/** How much of interest to people an event is, by its name; `claims_lost` is told here and not by the core. */
const LEVELS = { ...levels, claims_lost: "warn" };

/** Those who listen to what happens. */
export class Listeners {
  #all = new Set();
  #called = new Set();

  /** What the core tells. */
  tell(event) {
    for (const listener of this.#all) listener.tell(event);
    this.note(event);
  }

  /** What is only for those who are called at once. */
  note(event) {
    for (const listener of this.#called) {
      try {
        listener({ level: LEVELS[event.event] ?? "debug", ...event });
      } catch {
        // Whoever only looks on changes nothing.
      }
    }
  }

  /** Calls a function with each event, until what this gives is called. */
  call(listener) {
    if (typeof listener !== "function") throw refuse("invalid", "on_event", "`listener` must be a function");
    const own = (event) => listener(event);
    this.#called.add(own);
    return () => void this.#called.delete(own);
  }

  close() {
    for (const listener of this.#all) listener.end();
  }

  /** Events from now on. */
  listen(signal) {
    const queue = [];
    /** Those who came for an event that is still to happen. */
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
