// Buys, and then reads and buys in turns, over the `fetch` that the first word names: Node's own, or that of the undici of that name; `pipelining` makes it that of an
// agent that keeps no connection. The undici of the second word is loaded before. With `VOUCHES`, its store vouches for its claims. Prints the
// sessions that it bought.
import { AgentClient } from "hopline";

import { OwnStore } from "../lib/own-store.mjs";
import { WANTED } from "../lib/sandbox.mjs";
import { tool } from "../lib/tools.mjs";

const [name, beside] = process.argv.slice(2);
if (beside) tool(beside);
const [undici, isAround] = name === "own" ? [] : [tool(name.split("+")[0]), name.includes("+")];
const dispatcher = isAround && new undici.Agent({ pipelining: 0 });
const given = isAround ? (url, init) => undici.fetch(url, { ...init, dispatcher }) : undici?.fetch;
const store = process.env.VOUCHES ? Object.assign(new OwnStore(), { vouches: async () => true }) : undefined;
const agent = new AgentClient({ fetch: given, store });
const sold = [];
const buy = async () => sold.push((await agent.createSession(WANTED)).session_id);
// Nothing has used `fetch` yet.
await Promise.all(Array.from({ length: 8 }, buy));
for (let n = 0; n < 3; n += 1) {
  await agent.getBalance();
  await buy();
}
await Promise.all([buy(), buy()]);
await agent.getBalance();
console.log(JSON.stringify(sold));
await agent.close();
