// Functions that tests and programs put in the place of Node's own: nothing is bought past it, and what it may have sent is in doubt.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { WANTED, program, sandbox } from "./lib/sandbox.mjs";

const MOCKED = { success: true, data: { session_id: "s-mock", session_type: "dynamic", status: "active" } };

test("a `fetch` that a test puts in the place of the program's own counts for a client that was made before", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent({ retry: { attempts: 1 } });
  await agent.createSession(WANTED);
  const own = globalThis.fetch;
  t.after(() => (globalThis.fetch = own));
  let sent = 0;
  globalThis.fetch = async () => {
    sent += 1;
    return Response.json(MOCKED, { status: 202 });
  };
  assert.deepEqual([(await agent.createSession(WANTED)).session_id, sent], ["s-mock", 1]);
  globalThis.fetch = undefined;
  await assert.rejects(agent.createSession(WANTED), { kind: "unavailable", effect: "none" });
  globalThis.fetch = own;
  assert.equal((await service.state()).charges.length, 1);
  await agent.createSession(WANTED);
  assert.equal((await service.state()).charges.length, 2);
});

test("a purchase over a `fetch` that repeats by itself is in doubt, also if it was there before the package", async (t) => {
  let came = 0;
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => {
      came += 1;
      // Another request finds nobody any more.
      server.close();
      response.socket.destroy();
    });
  });
  t.after(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { out } = await program("repeating.mjs", { HOPLINE_BASE_URL: `http://127.0.0.1:${server.address().port}` }).ended;
  assert.deepEqual([JSON.parse(out), came], [["in_doubt", "unknown"], 1]);
});

test("a program without a free file descriptor has bought nothing, and knows that", { skip: process.platform === "win32" }, async () => {
  const { out, errors } = await program("limited.sh", {}, ["64", process.execPath, fileURLToPath(new URL("programs/crowded.mjs", import.meta.url))], undefined, "sh").ended;
  assert.deepEqual(JSON.parse(out || "null"), [["unavailable", "none"], ["unavailable", "none"]], errors);
});

test("a listener's promise that fails ends nothing", async (t) => {
  const service = await sandbox(t);
  let told = 0;
  const fail = async () => {
    told += 1;
    throw new Error("the listener's own");
  };
  const agent = service.agent({ log: { info: fail, debug: fail, warn: fail } });
  agent.onEvent(fail);
  await agent.createSession(WANTED);
  await new Promise(setImmediate);
  assert.ok(told > 2);
});

test("a pool's rule for a block answers at once", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent({ dailyCapUsd: 500 });
  const open = (name, blocked) => agent.openPool(name, { ...WANTED, size: 1, protocol: "http", blocked });
  await assert.rejects(open("a", async () => false), { kind: "invalid", effect: "none", field: "blocked" });
  assert.equal((await service.state()).charges.length, 0);
  const pool = await open("b", ({ fails }) => (fails ? Promise.reject(new Error("the rule's own")) : Promise.resolve(false)));
  await pool.withLease((lease) => {
    for (const fails of [true, false]) assert.throws(() => lease.observe({ status: 200, fails }), { kind: "misuse", operation: "observe", effect: "none" });
    assert.equal(lease.observe(200), "keep");
  });
});

test("a relay sends by the `fetch` of the moment, too", async (t) => {
  const { relay } = await import("hopline/backend");
  const handle = relay({ baseUrl: "https://hopline.invalid/v1", apiKey: "key", mount: "/api/v1", allow: ["createSession"], authorize: () => ({ account: "ann" }) });
  const own = globalThis.fetch;
  t.after(() => (globalThis.fetch = own));
  globalThis.fetch = async () => Response.json(MOCKED, { status: 202 });
  const headers = { authorization: "Bearer of-an-app", "content-type": "application/json" };
  const answer = await handle(new Request("https://app.example/api/v1/sessions", { method: "POST", headers, body: "{}" }));
  assert.deepEqual([answer.status, (await answer.json()).data.session_id], [202, "s-mock"]);
});
