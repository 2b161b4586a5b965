// A pool of two hundred with all that goes wrong: lost answers, blocks, sessions that end, a backend that is out, a balance that is empty.
// All of that, and then five seconds of use, or as long as HOPLINE_POOL_SECONDS says.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

const SECONDS = Number(process.env.HOPLINE_POOL_SECONDS ?? 5);
/** So many are free, and more are bought for whoever comes then. */
const [SIZE, READY] = [200, 170];
/** Trials of a hold are made after 30 s, and then after twice as long as before: a machine under load may need three. */
const COMES_BACK = 240_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("never more than its size, and as many charges as sessions", { timeout: 4 * COMES_BACK + SECONDS * 1000 }, async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "0-200", "--session-limit", "1000", "--rate-limit", "10000000", "--balance", "1000000");
  let [sent, lost] = [0, 0];
  let [isOut, isOver] = [false, false];
  t.after(() => (isOver = true));
  const agent = service.agent({
    store: new FolderStore(folder()),
    dailyCapUsd: 100_000,
    fetch: async (url, init) => {
      sent += 1;
      if (sent % 20 === 0 && !isOut) {
        lost += 1;
        await service.fault({ kind: "drop_after" });
      }
      return fetch(url, init);
    },
  });
  // Another client ends sessions behind the pool's back.
  const stranger = service.agent();
  const begun = performance.now();
  const seconds = (since = begun) => `${((performance.now() - since) / 1000).toFixed(1)} s`;
  let [most, lent, blocks, ended, refused, random] = [0, 0, 0, 0, 0, 7];
  const over = new Set();
  /** By session: when it was seen first. */
  const since = new Map();
  const chance = () => (random = (random * 48_271) % 2_147_483_647) / 2_147_483_647;
  const pool = await agent.openPool("many", { ...WANTED, size: SIZE, keepReady: READY });
  const use = async () => {
    while (!isOver) {
      try {
        await pool.withLease({ target: "shop.example", timeoutMs: 5000 }, async (lease) => {
          lent += 1;
          await pause(200 + chance() * 600);
          // A session that is blocked while the service is out gets no other exit, and there are to be some left.
          const isBlocked = chance() < (isOut ? 0.01 : 0.1);
          blocks += isBlocked ? 1 : 0;
          // The observation of a request through it.
          lease.observe(over.has(lease.sessionId) ? "proxy" : isBlocked ? "block" : 200);
        });
      } catch (error) {
        assert.equal(error.kind, "unavailable", error.stack);
        refused += 1;
        await pause(200);
      }
    }
  };
  const watch = async () => {
    while (!isOver) {
      await pause(1000);
      const { sessions } = await service.state();
      const living = sessions.filter(({ status }) => status === "creating" || status === "active");
      most = Math.max(most, living.length);
      for (const { session_id } of living) if (!since.has(session_id)) since.set(session_id, Date.now());
      // A pool whose sessions end within a minute of being ready holds, as it should: these are older.
      const old = living.filter(({ session_id }) => Date.now() - since.get(session_id) > 62_000);
      if (old.length === 0 || isOut) continue;
      const { session_id } = old[Math.floor(chance() * old.length)];
      await stranger.terminateSession({ session_id }).catch(() => {});
      over.add(session_id);
      ended += 1;
    }
  };
  const check = (status) => {
    const own = status.ready + status.leased + status.creating + status.changing + status.resting + status.in_doubt + status.empty;
    assert.equal(own + status.with_others + status.free_in_store + status.unknown, SIZE);
    return status;
  };
  /** Waits for a status, and gives it. */
  const until = async (what, is) => {
    let status;
    for (const at = performance.now(); performance.now() - at < COMES_BACK; await pause(100)) {
      status = check(await pool.status());
      if (is(status)) return status;
    }
    assert.fail(`${what}: ${JSON.stringify({ ...status, slots: undefined })}`);
  };
  const callers = [];
  const come = (count) => callers.push(...Array.from({ length: count }, use));
  /** Nothing can be bought for so long: what is there is lent on, the status says why no more is bought, and then it goes on by itself. */
  const held = async (reason, needs, ms) => {
    const at = performance.now();
    const { hold } = await until(`holds for ${reason}`, ({ hold }) => hold?.reason === reason);
    assert.deepEqual([hold.needs, hold.retry_at > hold.since], [needs, true]);
    const before = lent;
    const lends = await until(`lends while it holds for ${reason}`, () => lent >= before + 20 && performance.now() - at > ms);
    assert.equal(lends.hold?.reason, reason);
    return async () => {
      await until(`buys again after ${reason}`, ({ hold }) => hold === undefined);
      console.log(`${reason}: ${lent - before} leases, it bought again after ${seconds(at)}`);
    };
  };

  callers.push(watch());
  come(20);
  // A purchase that was accepted waits for its session, whatever becomes of the service, and counts as under way.
  await until("is filled", ({ ready, slots }) => ready >= READY && slots.every(({ reason }) => reason !== "buying"));
  const filled = seconds();
  isOut = true;
  await service.fault({ kind: "html", status: 503 }, undefined, 1_000_000);
  come(10);
  const answers = await held("no_answer", "nobody", 10_000);
  await fetch(`${service.control_url}/faults`, { method: "DELETE" });
  isOut = false;
  await answers();

  await service.control("balance", { amount: "0" });
  come(10);
  const affords = await held("balance", "person", 5000);
  await service.control("balance", { amount: "1000000" });
  await affords();

  await pause(SECONDS * 1000);
  isOver = true;
  await Promise.all(callers);
  // The service comes back by itself.
  const status = await until("has come back", ({ slots, hold, ready }) => hold === undefined && ready >= READY && slots.every(({ state, reason }) => state === "ready" || reason));
  await pool.close();
  const state = await service.state();
  const count = (reason) => status.slots.filter((slot) => slot.reason === reason).length;
  console.log(`a pool of ${SIZE}, filled in ${filled}, then all in ${seconds()}: ${lent} leases, ${blocks} blocks, ${ended} ended, ${refused} not lent in time, ${sent} requests, ${lost} answers lost; at most ${most} living, ${state.charges.length} charges, ${state.sessions.length} sessions; ready ${status.ready}, to rotate ${count("to_rotate")}, in doubt ${status.in_doubt}`);
  assert.ok(most <= SIZE, `${most}`);
  assert.equal(state.charges.length, state.sessions.length);
  assert.ok(lent > SECONDS * 10 && blocks > SECONDS && ended > SECONDS / 4 && lost > 20);
  assert.ok(state.charges.length > READY);
});
