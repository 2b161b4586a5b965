// A real nginx between the client and the service: what Node's own fetch makes of its failures, held against the service's own books.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { WANTED, sandbox } from "./lib/sandbox.mjs";
import { lacks } from "./lib/tools.mjs";

/** Longer than the gateway waits. */
const LATE_MS = 20_000;

const skip = lacks("nginx");

const BOUGHT = "bought";
// A road of the gateway, what happens behind it, what a purchase ends with that is sent once (bought, or in doubt with that status),
// and the charges that the service has then.
const CASES = [
  // A write has a connection of its own, and not the one that dies.
  ["dying", undefined, BOUGHT, 1],
  ["plain", undefined, BOUGHT, 1],
  ["plain", { kind: "drop_before" }, 502, 0],
  ["plain", { kind: "drop_after" }, 502, 1],
  ["plain", { kind: "truncate" }, 202, 1],
  ["gone", undefined, 502, 0],
  ["late", { kind: "delay", ms: LATE_MS }, 504, 1],
  ["late", { kind: "in_progress", ms: LATE_MS }, 504, 0],
  // The gateway itself sends it again: the first one is answered in the place of the second, or is still under way.
  ["twice", { kind: "drop_after" }, BOUGHT, 1],
  ["twice", { kind: "in_progress", ms: LATE_MS }, 409, 0],
  ["stream", undefined, BOUGHT, 1],
  ["stream", { kind: "truncate" }, 202, 1],
  ["gzip", undefined, BOUGHT, 1],
  ["gzip", { kind: "truncate" }, 202, 1],
];

/** A sandbox behind nginx, and clients on its roads. */
async function gateway(t) {
  const service = await sandbox(t, "--gateway");
  const charges = async () => (await service.state()).charges.length;
  return { ...service, charges, on: (road) => service.agent({ baseUrl: `${service.gateway_url}/${road}/v1` }) };
}

const buy = (agent, more) => agent.createSession(WANTED, { intent: "job", ...more });

/** The client says truly what is open, by a record that is kept. */
async function isInDoubt(agent, bought, status, what) {
  const error = await bought.then(() => assert.fail(`${what}: was to fail`), (error) => error);
  assert.deepEqual([error.kind, error.effect, error.status], ["in_doubt", "unknown", status], `${what}: ${error.stack}`);
  assert.deepEqual((await agent.saved()).map(({ record }) => record), [error.record], what);
}

test("a purchase that a gateway breaks is in doubt, and is made once by starting its intent again", { skip }, async (t) => {
  const service = await gateway(t);
  for (const [road, fault, ending, charges] of CASES) {
    const what = `${road} ${JSON.stringify(fault)}`;
    const before = await service.charges();
    const agent = service.on(road);
    if (road === "dying") {
      // So that there is a connection that was used before, which dies when it is used again; `peers.test.mjs` sees that no write uses one.
      await agent.getBalance();
    }
    if (fault) await service.fault(fault, "create_session");
    const bought = buy(agent, { attempts: 1 });
    if (ending === BOUGHT) await bought;
    else await isInDoubt(agent, bought, ending, what);
    assert.equal((await service.charges()) - before, charges, what);
    await service.control("clock", { advance_ms: LATE_MS });
    const { session_id } = await buy(agent);
    const state = await service.state();
    assert.deepEqual([state.charges.length - before, state.charges.at(-1).session_id], [1, session_id], what);
  }
});

test("a purchase that never gets past a gateway stays in doubt", { skip }, async (t) => {
  const service = await gateway(t);
  for (const [road, status, charges] of [["small", 413, 0], ["narrow", 502, 1]]) {
    const agent = service.on(road);
    for (let n = 0; n < 2; n += 1) {
      await isInDoubt(agent, buy(agent, { attempts: 2 }), status, road);
      assert.equal(await service.charges(), charges);
    }
  }
});

test("a session lives on over connections that the gateway closes", { skip }, async (t) => {
  const service = await gateway(t);
  const agent = service.on("kept");
  const { session_id } = await agent.openSession(WANTED, { intent: "job" });
  for (let n = 0; n < 6; n += 1) {
    // Every third request is the last one of its connection, and a rest is longer than the gateway keeps one.
    if (n === 3) await sleep(2000);
    assert.equal((await agent.getSession({ session_id })).session_id, session_id);
  }
  await agent.terminateSession({ session_id });
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["terminated"]]);
});

test("a compressed answer is read as any other", { skip }, async (t) => {
  const service = await gateway(t);
  const encodings = [];
  const watched = async (...request) => {
    const response = await fetch(...request);
    encodings.push(response.headers.get("content-encoding"));
    return response;
  };
  const agent = service.agent({ baseUrl: `${service.gateway_url}/gzip/v1`, fetch: watched });
  const { items } = await agent.listProducts({ limit: 100 });
  assert.ok(items.length > 1);
  assert.deepEqual(encodings, ["gzip"]);
});
