// One of several processes that share a pool: acquires two sessions, one after the other, says how long each took, and keeps them
// until its standard input ends: then the others have theirs.
import { AgentClient, FolderStore } from "hopline";

const agent = new AgentClient({ store: new FolderStore(process.env.FOLDER), dailyCapUsd: 500 });
const pool = await agent.openPool("shared", { session_type: "dynamic", product_no: "dynamic-world", quantity: 1, size: 8 });
const [leases, took] = [[], []];
for (let n = 0; n < 2; n += 1) {
  const begun = performance.now();
  leases.push(await pool.acquire());
  took.push(Math.round(performance.now() - begun));
}
console.log(JSON.stringify({ took, sessions: leases.map(({ sessionId }) => sessionId) }));
for await (const _ of process.stdin);
if (!leases.every(({ valid }) => valid)) throw new Error("a lease was lost");
for (const lease of leases) lease.release();
await agent.close();
