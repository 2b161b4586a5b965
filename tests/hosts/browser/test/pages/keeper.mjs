// A client of a database in a worker: does what its page says, by the clock of its page.
import { IndexedDBStore } from "./hopline/web.mjs";
import { ask } from "./runner/lib/suite.mjs";

let now;
let owner;
const made = crypto.randomUUID.bind(crypto);
// The row of the database that is this client's.
crypto.randomUUID = () => (owner = made());
let store;

self.onmessage = async ({ data: { id, name, at, method, given } }) => {
  now = at;
  store ??= new IndexedDBStore(name, { now: () => now });
  try {
    const answer = method === "owner" ? owner : method === "close" ? await store.close() : await ask(store, method, ...given);
    self.postMessage({ id, answer });
  } catch (error) {
    self.postMessage({ id, error: error.stack });
  }
};
