// Reads and buys in turns over the `fetch` that the first word names: Node's own, or that of the undici of that name; `pipelining` makes it that of an
// agent that keeps no connection. The undici of the second word is loaded before. Prints the sessions that it bought.
import { AgentClient } from "hopline";

import { WANTED } from "../lib/sandbox.mjs";
import { tool } from "../lib/tools.mjs";

const [name, beside] = process.argv.slice(2);
if (beside) tool(beside);
const [undici, isAround] = name === "own" ? [] : [tool(name.split("+")[0]), name.includes("+")];
const dispatcher = isAround && new undici.Agent({ pipelining: 0 });
const given = isAround ? (url, init) => undici.fetch(url, { ...init, dispatcher }) : undici?.fetch;
const agent = new AgentClient({ fetch: given });
const sold = [];
for (let n = 0; n < 3; n += 1) {
  await agent.getBalance();
  sold.push((await agent.createSession(WANTED)).session_id);
}
await Promise.all([4, 5].map(async () => sold.push((await agent.createSession(WANTED)).session_id)));
await agent.getBalance();
console.log(JSON.stringify(sold));
await agent.close();
