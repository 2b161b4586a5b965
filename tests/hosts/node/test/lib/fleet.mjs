// Processes that share a pool over one folder: each runs `programs/scraper.mjs` and says which leases it has.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { folder, program, sandbox } from "./sandbox.mjs";

/** How long each story takes, if longer than in every run. */
export const SECONDS = Number(process.env.HOPLINE_FLEET_SECONDS ?? 0);
/** Milliseconds within which each process has a lease, and what a loaded machine adds. */
export const NOBODY_WAITS = 10_000 + 5000;
/** Milliseconds within which processes that start at once have their shares. */
export const SETTLES = 8000;
const ROOM = ["--session-limit", "1000", "--rate-limit", "10000000", "--balance", "100000"];
const PLAN = { callers: 1, work: 200, rest: 0, timeoutMs: 30_000, every: 0, after: 0, targets: ["shop.example"], blocksAfter: {}, seen: 200, pool: {} };
const CLOCK_OFF = fileURLToPath(new URL("../programs/clock-off.mjs", import.meta.url));

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** The time of the clock that all processes of this machine have, in milliseconds. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/** Waits until a function gives something true, and gives that. */
export async function until(holds) {
  for (const end = now() + 90_000; now() < end; await pause(20)) {
    const told = await holds();
    if (told) return told;
  }
  assert.fail(`it never came: ${holds}`);
}

/**
 * Waits for a period of so many milliseconds about whose start and end a function has nothing to complain, and gives its start. A stall of
 * the machine may spoil one period, and a fault spoils them all.
 */
export async function calm(ms, complaint) {
  let last;
  for (const end = now() + 90_000 + ms, begun = now(); now() < end; await pause(50)) {
    const from = now() - ms;
    if (from >= begun && (last = complaint(from)) === undefined) return from;
  }
  assert.fail(`never for ${ms} ms: ${last}`);
}

/** A service, a folder, and what starts a process with the plan that all have in common, and one of its own. */
export async function fleet(t, common = {}, ...options) {
  const service = await sandbox(t, ...ROOM, ...options);
  const place = folder();
  const all = [];
  const start = (own = {}) => {
    const { clockOff, ...plan } = { ...PLAN, ...common, ...own, pool: { ...common.pool, ...own.pool } };
    const one = running(t, service, place, plan, clockOff);
    all.push(one);
    return one;
  };
  const charges = async () => (await service.state()).charges.length;
  const living = async () => (await service.state()).sessions.filter(({ status }) => status === "creating" || status === "active").length;
  /** A client of this process on the same folder, with the pool's own options. */
  const { FolderStore } = await import("hopline");
  const open = async (more) => {
    const agent = service.agent({ store: new FolderStore(place), dailyCapUsd: 10_000 });
    return agent.openPool("shop", { session_type: "dynamic", product_no: "dynamic-world", protocol: "http", quantity: 1, ...common.pool, ...more });
  };
  return { service, start, all, charges, living, open };
}

function running(t, service, place, plan, clockOff) {
  const environment = { FOLDER: place, HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url, PLAN: JSON.stringify(plan), CLOCK_OFF: String(clockOff) };
  const node = clockOff === undefined ? process.execPath : [process.execPath, "--import", CLOCK_OFF];
  const { child, ended } = program("scraper.mjs", environment, [], undefined, node, 3_600_000);
  t.after(() => child.kill("SIGKILL"));
  const told = [];
  const leases = [];
  const out = new Map();
  createInterface(child.stdout).on("line", (line) => {
    const event = JSON.parse(line);
    told.push(event);
    if (event.word === "lent") {
      const lease = { ...event, begun: event.at, ended: Infinity };
      leases.push(lease);
      out.set(event.caller, lease);
    } else if (event.word === "back") {
      out.get(event.caller).ended = event.at;
    }
  });
  const since = (list, from) => list.filter(({ at }) => at >= from);
  const finish = async (signal) => {
    child.kill(signal);
    return ended;
  };
  return {
    child,
    leases: (from = 0) => since(leases, from),
    /** How often each session was lent since then. */
    sessions: (from = 0) => new Set(since(leases, from).map(({ session }) => session)),
    /** The callers who got no lease: what they were told. */
    unserved: (from = 0) => since(told, from).filter(({ word }) => word === "none"),
    failures: () => told.filter(({ word }) => word === "failed"),
    /** The wall clock there, when the pool was opened. */
    clock: () => told[0].clock,
    opened: async () => until(async () => told.length > 0 || (child.exitCode !== null && assert.fail((await ended).errors))),
    /** The longest time between two moments in which this process had no lease, in milliseconds. */
    longestWithout: (start, end) => {
      let [longest, covered] = [0, start];
      for (const { begun, ended: back } of leases.filter((lease) => lease.begun <= end)) {
        longest = Math.max(longest, begun - covered);
        covered = Math.max(covered, Math.min(end, back));
      }
      return Math.round(Math.max(longest, end - covered));
    },
    /** Ends it as a supervisor does, which waits. */
    close: async () => {
      const { code, errors } = await finish("SIGTERM");
      assert.deepEqual([code, errors], [0, ""]);
    },
    kill: () => finish("SIGKILL"),
  };
}

/** Waits until each has its pool, and says when that was. */
export async function allOpen(all) {
  await Promise.all(all.map(({ opened }) => opened()));
  return now();
}

/** The leases of each since then. */
export const shares = (all, from) => all.map(({ leases }) => leases(from).length);

/** The leases of the one that was served least, over the mean of all. */
export const least = (counts) => (Math.min(...counts) * counts.length) / counts.reduce((sum, count) => sum + count, 0);
