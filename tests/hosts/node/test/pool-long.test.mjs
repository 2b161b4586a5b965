// A pool of two hundred with all that goes wrong: lost answers, blocks, sessions that end. A minute, or as long as HOPLINE_POOL_SECONDS says.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

const SECONDS = Number(process.env.HOPLINE_POOL_SECONDS ?? 60);
const SIZE = 200;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("never more than its size, and as many charges as sessions", { timeout: (SECONDS + 300) * 1000 }, async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "0-200", "--session-limit", "1000", "--rate-limit", "10000000", "--balance", "1000000");
  let [sent, lost] = [0, 0];
  const agent = service.agent({
    store: new FolderStore(folder()),
    dailyCapUsd: 100_000,
    fetch: async (url, init) => {
      sent += 1;
      if (sent % 20 === 0) {
        lost += 1;
        await service.fault({ kind: "drop_after" });
      }
      return fetch(url, init);
    },
  });
  // What ends a session behind the pool's back.
  const stranger = service.agent();
  const begun = Date.now();
  let end = Infinity;
  let [most, lent, blocks, ended, refused, random] = [0, 0, 0, 0, 0, 7];
  const over = new Set();
  /** By session: when it was seen first. */
  const since = new Map();
  const chance = () => (random = (random * 48_271) % 2_147_483_647) / 2_147_483_647;
  const pool = await agent.openPool("many", { ...WANTED, size: SIZE, ready: SIZE, maxInDoubt: SIZE });
  const use = async () => {
    while (Date.now() < end) {
      try {
        await pool.withLease({ target: "shop.example", timeoutMs: 5000 }, async (lease) => {
          lent += 1;
          await pause(50 + chance() * 300);
          const isBlocked = chance() < 0.1;
          blocks += isBlocked ? 1 : 0;
          // What a request through it would meet.
          lease.observe(over.has(lease.sessionId) ? "proxy" : isBlocked ? "block" : 200);
        });
      } catch (error) {
        assert.equal(error.kind, "unavailable", error.stack);
        refused += 1;
        await pause(200);
      }
    }
  };
  const alive = ({ sessions }) => sessions.filter(({ status }) => status === "creating" || status === "active");
  const watch = async () => {
    while (Date.now() < end) {
      await pause(500);
      const living = alive(await service.state());
      most = Math.max(most, living.length);
      for (const { session_id } of living) if (!since.has(session_id)) since.set(session_id, Date.now());
      // A pool whose sessions end within a minute of being ready holds, as it should: these are older.
      const old = living.filter(({ session_id }) => Date.now() - since.get(session_id) > 62_000);
      if (old.length === 0) continue;
      const { session_id } = old[Math.floor(chance() * old.length)];
      await stranger.terminateSession({ session_id }).catch(() => {});
      over.add(session_id);
      ended += 1;
      const { ready, leased, creating, resting, in_doubt, empty, elsewhere } = await pool.status();
      assert.equal(ready + leased + creating + resting + in_doubt + empty + elsewhere, SIZE);
    }
  };
  const watched = watch();
  await pool.waitReady(SIZE);
  const filled = (Date.now() - begun) / 1000;
  end = Date.now() + SECONDS * 1000;
  await Promise.all([watched, ...Array.from({ length: 30 }, use)]);
  // It comes back by itself.
  for (let n = 0; n < 120 && (await pool.status()).in_doubt > 0; n += 1) await pause(500);
  const status = await pool.status();
  await pool.close();
  const state = await service.state();
  most = Math.max(most, alive(state).length);
  console.log(`a pool of ${SIZE}, filled in ${filled.toFixed(1)} s, then ${SECONDS} s: ${lent} leases, ${blocks} blocks, ${ended} ended, ${refused} not lent in time, ${sent} requests, ${lost} answers lost; at most ${most} living, ${state.charges.length} charges, ${state.sessions.length} sessions; ready ${status.ready}, in doubt ${status.in_doubt}, ${status.hold?.reason}`);
  assert.ok(most <= SIZE, `${most}`);
  assert.equal(state.charges.length, state.sessions.length);
  assert.ok(lent > SECONDS * 10 && blocks > SECONDS && ended > SECONDS / 4 && lost > 20);
  assert.ok(status.ready > SIZE / 4 && state.charges.length > SIZE, JSON.stringify(status));
});
