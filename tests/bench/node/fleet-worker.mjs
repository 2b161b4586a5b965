// A process of a fleet: 20 callers lend sessions for WORK milliseconds. It prints how long its first lease took, then each second's leases.
import { AgentClient, FolderStore } from "hopline";

const work = Number(process.env.WORK);
const agent = new AgentClient({ store: new FolderStore(process.env.FOLDER), dailyCapUsd: 10_000 });
const begun = performance.now();
const pool = await agent.openPool("shop", { session_type: "dynamic", product_no: "dynamic-world", quantity: 1, size: 20 });
let [leases, isFirst] = [0, true];

async function call() {
  for (;;) {
    const lease = await pool.acquire({ target: "shop.example" }).catch((error) => {
      if (error.kind !== "unavailable") throw error;
    });
    if (!lease) continue;
    if (isFirst) start();
    // A macrotask also where there is no work, as after any request.
    await new Promise((resolve) => (work > 0 ? setTimeout(resolve, work) : setImmediate(resolve)));
    lease.observe(200);
    lease.release();
    leases += 1;
  }
}

function start() {
  isFirst = false;
  console.log(performance.now() - begun);
  setInterval(() => {
    console.log(leases);
    leases = 0;
  }, 1000);
}

for (let caller = 0; caller < 20; caller += 1) call();
