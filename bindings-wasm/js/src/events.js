/** How many events wait for a listener that does not come for them; the oldest go first. */
const KEPT = 1024;

/** Those who listen to what happens. */
export class Listeners {
  #all = new Set();

  tell(event) {
    for (const listener of this.#all) listener.tell(event);
  }

  close() {
    for (const listener of this.#all) listener.end();
  }

  /** Events from now on. */
  listen(signal) {
    const queue = [];
    let wake = () => {};
    let over = false;
    const listener = {
      tell: (event) => {
        if (queue.push(event) > KEPT) queue.shift();
        wake();
      },
      end: () => {
        over = true;
        this.#all.delete(listener);
        signal?.removeEventListener("abort", listener.end);
        wake();
      },
    };
    this.#all.add(listener);
    if (signal?.aborted) listener.end();
    else signal?.addEventListener("abort", listener.end, { once: true });
    return {
      async next() {
        while (queue.length === 0 && !over) await new Promise((resolve) => (wake = resolve));
        return queue.length > 0 ? { done: false, value: queue.shift() } : { done: true, value: undefined };
      },
      async return(value) {
        listener.end();
        queue.length = 0;
        return { done: true, value };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
