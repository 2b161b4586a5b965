// Playwright over a pool of sessions: a browser context for each exit. playwright.d.ts documents it.

/** So long does a lease wait for a session. */
const WAIT_MS = 60_000;

export class PoolContexts {
  #browser;
  #pool;
  #timeoutMs;
  #options;
  /** By slot: the context of the exit that was used last, as a promise, so that of several leases of an exit only the first makes it. */
  #exits = new Map();
  /** All contexts that are still to be closed. */
  #open = new Set();
  #isClosed = false;

  constructor(browser, pool, { timeoutMs = WAIT_MS, ...options } = {}) {
    if (typeof browser?.newContext !== "function") throw new TypeError("PoolContexts takes a browser that Playwright has launched");
    if (typeof pool?.acquire !== "function") throw new TypeError("PoolContexts takes a pool of `agent.openPool`");
    [this.#browser, this.#pool, this.#timeoutMs, this.#options] = [browser, pool, timeoutMs, options];
  }

  async withLease(...given) {
    const [use, terms] = given.reverse();
    if (typeof use !== "function") throw new TypeError("the last argument of withLease is a function, which is given the lease and the context");
    if (this.#isClosed) throw new Error("these contexts were closed");
    const lease = await this.#pool.acquire({ timeoutMs: this.#timeoutMs, ...terms });
    let held;
    try {
      held = await this.#of(lease);
      held.users += 1;
      return await use(lease, await held.context);
    } finally {
      // Pages go before the lease does: the next one of this exit may be another program's.
      if (held && (held.users -= 1) === 0) await pagesOf(held);
      lease.release();
    }
  }

  async close() {
    this.#isClosed = true;
    this.#exits.clear();
    await Promise.all([...this.#open].map((held) => this.#end(held)));
  }

  /** The context of a lease's exit; that of the exit before it is closed first. */
  async #of(lease) {
    const exit = `${lease.sessionId}/${lease.generation}`;
    const known = this.#exits.get(lease.slot);
    if (known?.exit === exit && !known.isGone) return known;
    const held = { exit, users: 0, isGone: false, context: undefined };
    this.#exits.set(lease.slot, held);
    this.#open.add(held);
    const made = async () => {
      if (known) await this.#end(known);
      const context = await this.#browser.newContext({ ...this.#options, proxy: lease.proxy.playwright() });
      // One that somebody closes, or whose browser ends, is made anew.
      context.once("close", () => {
        held.isGone = true;
        this.#open.delete(held);
      });
      return context;
    };
    held.context = made();
    held.context.catch(() => {
      held.isGone = true;
      this.#open.delete(held);
    });
    return held;
  }

  async #end(held) {
    this.#open.delete(held);
    const context = await held.context.catch(() => undefined);
    await context?.close();
  }
}

if (Symbol.asyncDispose) Object.defineProperty(PoolContexts.prototype, Symbol.asyncDispose, { value: PoolContexts.prototype.close });

async function pagesOf({ context }) {
  const made = await context.catch(() => undefined);
  // A browser that has ended has closed them.
  await Promise.all((made?.pages() ?? []).map((page) => page.close().catch(() => {})));
}
