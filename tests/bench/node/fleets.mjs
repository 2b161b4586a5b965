// Leases through several processes that share a pool of 20 over a folder, with a sandbox as the service.
import { spawn } from "node:child_process";
import { once as event } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("fleet-worker.mjs", import.meta.url));
const SANDBOX = ["--seed", "7", "--provisioning-ms", "0", "--session-limit", "1000", "--rate-limit", "10000000", "--balance", "100000"];

/** The rows of fleets of 1, 2 and 6 processes; once: of 1 and 2, for a second. */
export async function fleets(once) {
  const rows = [];
  const [firsts, later] = [[], []];
  for (const [work, words] of [[0, "given back at once"], [100, "kept for 100 ms"]]) {
    for (const many of once ? [1, 2] : [1, 2, 6]) {
      const lived = await fleet(many, work, once ? 1 : 10, once ? 1 : 10);
      const [first, ...others] = lived.firsts;
      firsts.push(first);
      later.push(...others);
      const through = `${many} ${many === 1 ? "process" : "processes"} of 20 callers`;
      rows.push({ work: `leases a second through ${through} on 20 sessions, each ${words}`, figures: lived.rates, unit: "/s" });
      if (many > 1) rows.push({ work: `the leases of the least served of ${through}, each ${words}, over the mean`, figures: [lived.least], unit: "", least: 0.5 });
    }
  }
  rows.push({ work: "the first lease of the first process of a pool, whose session is ready when it is first read", figures: firsts, unit: "ms" });
  rows.push({ work: "the first lease of a process that comes 0.5 s after another one", figures: later, unit: "ms" });
  return rows;
}

/** Lets so many processes run for so many seconds, after some in which they find their shares. */
async function fleet(many, work, seconds, settles) {
  const place = mkdtempSync(join(tmpdir(), "hopline-bench-"));
  const service = spawn(process.env.HOPLINE_SANDBOX, ["--with-parent", ...SANDBOX], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await event(createInterface(service.stdout), "line");
  const { api_key, agent_url } = JSON.parse(line);
  const workers = [];
  try {
    for (let number = 0; number < many; number += 1) {
      const env = { ...process.env, HOPLINE_API_KEY: api_key, HOPLINE_BASE_URL: agent_url, FOLDER: place, WORK: String(work) };
      const child = spawn(process.execPath, [WORKER], { env, stdio: ["pipe", "pipe", "inherit"] });
      const told = createInterface(child.stdout);
      const counts = [];
      const [first] = await event(told, "line");
      told.on("line", (count) => counts.push(Number(count)));
      workers.push({ child, counts, first: Number(first) });
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    await new Promise((resolve) => setTimeout(resolve, 1000 * settles));
    const from = workers.map(({ counts }) => counts.length);
    const isDone = () => workers.every(({ counts }, n) => counts.length >= from[n] + seconds);
    while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 50));
    const ofEach = workers.map(({ counts }, n) => counts.slice(from[n], from[n] + seconds));
    const sum = (list) => list.reduce((all, count) => all + count, 0);
    const rates = ofEach[0].map((_, second) => sum(ofEach.map((counts) => counts[second])));
    return { rates, least: (Math.min(...ofEach.map(sum)) * many) / sum(rates), firsts: workers.map(({ first }) => first) };
  } finally {
    for (const { child } of workers) child.kill("SIGKILL");
    service.kill("SIGKILL");
    rmSync(place, { recursive: true });
  }
}
