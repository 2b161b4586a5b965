// Calls that are given up while their store is asked, which answers later, by an error each time. Prints what is kept for each of them, in bytes.
import { AgentClient } from "hopline";

import { OwnStore } from "../lib/own-store.mjs";
import { WANTED } from "../lib/sandbox.mjs";

const store = new OwnStore();
/** The calls that are out and may be answered. */
let out = [];
store.put = () => new Promise((_, reject) => out.push(() => reject(new Error(`${Math.random()} is gone. `.repeat(200)))));
const agent = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", store, fetch: async () => Promise.reject(new Error("was sent")) });

async function rounds(count) {
  for (let n = 0; n < count; n += 1) {
    const given = new AbortController();
    const call = agent.createSession(WANTED, { signal: given.signal }).catch(() => {});
    while (out.length === 0) await new Promise(setImmediate);
    given.abort();
    out.splice(0).forEach((answer) => answer());
    await call;
    await new Promise(setImmediate);
  }
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

await rounds(500);
const before = await rounds(500);
console.log(Math.round(((await rounds(3000)) - before) / 3000));
await agent.close();
