// A page fetched through a lease by Node's own `fetch` and by that of the installed `undici`: prints what came of each.
import { createRequire } from "node:module";

import { AgentClient } from "hopline";

const agent = new AgentClient({ dailyCapUsd: 50 });
const pool = await agent.openPool("shop", { session_type: "dynamic", product_no: "dynamic-world", protocol: "http", size: 1 });
const ways = { node: () => fetch, undici: () => createRequire(import.meta.url)("undici").fetch };
const told = {};
for (const [name, way] of Object.entries(ways)) {
  told[name] = await pool.withLease(async (lease) => {
    const answer = await way()(process.env.TARGET, { dispatcher: lease.dispatcher() });
    await answer.text();
    return [answer.status, lease.observe(answer)];
  }).catch(({ message, kind }) => [kind, message]);
}
await pool.drain();
await agent.close();
console.log(JSON.stringify(told));
