import { refuse } from "./error.js";

/** Records in memory: they last as long as the object does. Like every store it serves one client at a time. */
export class MemoryStore {
  #records = new Map();
  #open = false;

  async open(client) {
    if (this.#open) throw refuse("store", "store", "this store serves another client; give each client one of its own");
    this.#open = true;
    client.take(this.#records);
  }

  async keep(record, data) {
    this.#records.set(record, data);
  }

  async remove(record) {
    this.#records.delete(record);
  }

  async close() {
    this.#open = false;
  }
}
