// Acquires the one lease of a pool and drops it; prints whether somebody else got it once it was collected.
import { AgentClient } from "hopline";

const agent = new AgentClient({ dailyCapUsd: 500 });
const pool = await agent.openPool("leaky", { session_type: "dynamic", product_no: "dynamic-world", quantity: 1, size: 1 });
await (async () => void (await pool.acquire()))();
const next = pool.acquire({ timeoutMs: 20_000 });
const timer = setInterval(globalThis.gc, 50);
const lease = await next;
clearInterval(timer);
console.log(lease.valid ? 1 : 0);
await agent.close();
