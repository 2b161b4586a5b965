import { refuse } from "./error.js";
import { loadRest } from "./load.js";
import { PLACE } from "./reload.js";
import { runtime } from "./runtime.js";

/**
 * Records in a database of the browser, which tabs and workers share. hopline.d.ts documents it. The database itself is opened by code that is loaded
 * with the core.
 */
export class IndexedDBStore {
  #name;
  #make;
  #database;
  #lost = () => {};

  constructor(name, { now = Date.now } = {}) {
    if (typeof name !== "string" || name === "") throw refuse("invalid", "store", "`name` must be the name of a database");
    this.#name = name;
    this.#make = () => {
      const database = new runtime.Database(name, now);
      database.onLost((names) => this.#lost(names));
      return database;
    };
  }

  get [PLACE]() {
    return `database ${this.#name}`;
  }

  claim(...given) {
    return this.#call("claim", given);
  }

  put(...given) {
    return this.#call("put", given);
  }

  delete(...given) {
    return this.#call("delete", given);
  }

  release(...given) {
    return this.#call("release", given);
  }

  list(...given) {
    return this.#call("list", given);
  }

  spend(...given) {
    return this.#call("spend", given);
  }

  async close() {
    await this.#database?.close();
  }

  onLost(tell) {
    this.#lost = tell;
  }

  vouches() {
    return this.#database?.vouches() ?? true;
  }

  async #call(name, given) {
    if (!runtime.Database) await loadRest();
    return (this.#database ??= this.#make())[name](...given);
  }
}
