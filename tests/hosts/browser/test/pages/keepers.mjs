// The requirements of every store, in a page: each client is a worker, and each case has a database of its own.
import { runSuite } from "./runner/lib/suite.mjs";

const DAMAGE = {
  cut: (bytes) => bytes.subarray(0, bytes.length / 2),
  empty: () => new Uint8Array(),
  garbage: () => Uint8Array.from([0xff, 0xfe, 0x00, 0x7b]),
};

/** Does something in a database behind the back of its clients. */
export async function within(name, stores, work) {
  const done = (request) => new Promise((resolve, reject) => Object.assign(request, { onsuccess: () => resolve(request.result), onerror: () => reject(request.error) }));
  const database = await done(indexedDB.open(name));
  const transaction = database.transaction(stores, "readwrite");
  const completed = new Promise((resolve) => (transaction.oncomplete = resolve));
  const given = await work((name) => transaction.objectStore(name), done);
  await completed;
  database.close();
  return given;
}

function keeper(name, clock) {
  const worker = new Worker("/keeper.mjs", { type: "module" });
  const waiting = new Map();
  worker.onmessage = ({ data: { id, answer, error } }) => (error ? waiting.get(id).reject(new Error(error)) : waiting.get(id).resolve(answer));
  worker.onerror = ({ message }) => waiting.forEach(({ reject }) => reject(new Error(message)));
  let count = 0;
  const send = (method, given) => new Promise((resolve, reject) => {
    waiting.set((count += 1), { resolve, reject });
    worker.postMessage({ id: count, name, at: clock.now, method, given });
  });
  return {
    call: (method, ...given) => send(method, given),
    async dieDuring(method, ...given) {
      send(method, given).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, clock.diesAfter));
      worker.terminate();
    },
    owner: () => send("owner"),
    die: async () => worker.terminate(),
    async close() {
      await send("close");
      worker.terminate();
    },
  };
}

let cases = 0;

function stage(diesAfter) {
  const [name, clock, clients] = [`case-${(cases += 1)}`, { diesAfter }, []];
  return {
    open() {
      clients.push(keeper(name, clock));
      return clients.at(-1);
    },
    set(now) {
      clock.now = now;
    },
    damage: (record, how) => within(name, ["records"], async (at, done) => {
      const found = await done(at("records").get(record));
      await done(at("records").put({ ...found, data: DAMAGE[how](found.data) }, record));
    }),
    async endClaims(client) {
      const owner = await client.owner();
      await within(name, ["owners"], (at, done) => done(at("owners").delete(owner)));
    },
    async end() {
      await Promise.all(clients.map((client) => client.die()));
      indexedDB.deleteDatabase(name);
    },
  };
}

export const run = (files, diesAfter) => runSuite(files, ["dies", "damage", "leases"], () => stage(diesAfter));
