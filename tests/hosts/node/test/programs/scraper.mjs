// A process of a fleet of scrapers that share a pool: so many callers lend and use sessions of it until standard input ends or SIGTERM comes.
// Each lease is a line of standard output as it begins and as it ends, with the time of the clock that all processes of a machine have.
import { AgentClient, FolderStore } from "hopline";

const plan = JSON.parse(process.env.PLAN);
const { callers, work, rest, timeoutMs, isKeyed, every, after, targets, blocksAfter, seen, pool: options } = plan;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const write = (word, caller, more) => console.log(JSON.stringify({ at: Number(process.hrtime.bigint()) / 1e6, word, caller, ...more }));
const agent = new AgentClient({ store: new FolderStore(process.env.FOLDER), dailyCapUsd: 10_000 });
const pool = await agent.openPool("shop", { session_type: "dynamic", product_no: "dynamic-world", protocol: "http", quantity: 1, ...options });
/** How often each exit was used for each target. */
const uses = new Map();
let isOver = false;

async function lend(caller) {
  const target = targets[caller % targets.length];
  const begun = performance.now();
  const waited = () => Math.round(performance.now() - begun);
  try {
    await pool.withLease({ target, key: isKeyed ? `${process.pid}-${caller}` : undefined, timeoutMs }, async (lease) => {
      write("lent", caller, { session: lease.sessionId, target, waited: waited() });
      await pause(work);
      const exit = `${lease.sessionId} ${lease.generation} ${target}`;
      uses.set(exit, (uses.get(exit) ?? 0) + 1);
      lease.observe(uses.get(exit) > (blocksAfter[target] ?? Infinity) ? 403 : seen);
      write("back", caller);
    });
  } catch ({ kind, reason, message }) {
    if (isOver) return;
    write(kind === "unavailable" ? "none" : "failed", caller, { target, waited: waited(), reason, message });
    await pause(kind === "unavailable" ? 0 : 500);
  }
  await pause(rest);
}

async function call(caller) {
  await pause(after);
  for (let at = performance.now(); !isOver; at += every) {
    await pause(Math.max(0, at - performance.now()));
    await lend(caller);
  }
}

async function end() {
  if (isOver) return;
  isOver = true;
  await agent.close();
  process.exit(0);
}

process.once("SIGTERM", end);
process.stdin.once("end", end).resume();
write("open", undefined, { clock: Date.now() });
for (let caller = 0; caller < callers; caller += 1) call(caller);
