import { refuse } from "./error.js";

const TAKEN = "another client of this store is at it, or keeps what came of it; nothing was sent";
const FOREIGN =
  "`intent` has a record of another API key, login or base URL, or of a newer version: give `sameAccount: true` where only those have changed; " +
  "where it is another account, name each with `account` or use another store; nothing was sent";

/** Another client has it. */
export const taken = (operation, more) => refuse("busy", operation, TAKEN, { advice: "wait_for_other", ...more });

/** A client that is gone had it, whose records are not known to be of this account. */
export const foreign = (operation, more) => refuse("invalid", operation, FOREIGN, { field: "intent", ...more });

/** Which intents are this client's, among all clients that share its store. */
export class Intents {
  #store;
  /** Says what an intent belongs to. A function, since the consoles of browsers show private members. */
  #account;
  /** By intent: the name of its claim. */
  #claims = new Map();
  /** By claim: how many calls of it are under way. */
  #running = new Map();

  constructor(store, account) {
    this.#store = store;
    this.#account = account;
  }

  /** Makes an intent this client's alone, and keeps it so for as long as the work goes on. */
  async during(operation, intent, work) {
    const claim = await this.#claim(intent);
    const count = (change) => this.#running.set(claim, (this.#running.get(claim) ?? 0) + change);
    count(1);
    try {
      await this.#claimed(operation, intent, claim);
      return await work();
    } finally {
      count(-1);
    }
  }

  /** Gives up the claims of intents that are neither under way nor among `remembered()`, which is nothing once it is too late. */
  async letGo(remembered) {
    if (!this.#store.keepClaims) return;
    await Promise.all(remembered().map((intent) => this.#claim(intent)));
    // What has begun since has its digest, so nothing is missed from here on.
    const saved = remembered();
    if (!saved) return;
    const kept = new Set(saved.map((intent) => this.#claims.get(intent)));
    for (const [claim, times] of this.#running) times > 0 ? kept.add(claim) : this.#running.delete(claim);
    await this.#store.keepClaims(kept).catch(() => {});
  }

  async #claimed(operation, intent, claim) {
    try {
      await this.#store.claim(claim);
    } catch (cause) {
      if (cause?.kind === "busy") throw taken(operation, { intent, cause });
      if (cause?.kind === "invalid") throw foreign(operation, { intent, cause });
      const what = "the store could not be asked whose intent it is; nothing was sent; mend the store";
      throw refuse("store", operation, what, { intent, cause, advice: "mend_store" });
    }
  }

  /** The name of an intent's claim: a digest, since an intent may hold any letters. */
  async #claim(intent) {
    if (!this.#claims.has(intent)) {
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify([...this.#account(), intent])));
      this.#claims.set(intent, [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
    }
    return this.#claims.get(intent);
  }
}
