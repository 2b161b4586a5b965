// The life of a session in a page, at a service of another origin.
import assert from "node:assert/strict";
import { test } from "node:test";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { stage } from "./lib/chromium.mjs";

test("a session is bought, read, rotated, judged and ended", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "300");
  const { page } = await stage(t, service);
  const told = await page.evaluate(async (wanted) => {
    const { AgentClient, IndexedDBStore, OpenSession, meta } = hopline;
    const agent = new AgentClient({ ...service, store: new IndexedDBStore("records") });
    const { items } = await agent.listProducts({ type: "dynamic", limit: 100 });
    const open = await agent.openSession({ ...wanted, quantity: "0.5" }, { intent: "job-17", credentials: true });
    const { phase } = open;
    const proxy = open.session.proxy.full_url.reveal();
    const read = await agent.getSession({ session_id: open.session_id });
    const seen = await open.observe({ status: 403 });
    const rotated = await open.rotate({ reason: "http_403", include_credentials: true });
    const handle = await open.wait();
    const again = handle.phase;
    await open.terminate();
    const lasting = await agent.openSession({ session_type: "static", product_no: "static-us", duration: 1 }, { credentials: true });
    const renewed = await agent.renewSession({ session_id: lasting.session_id, duration: 1 });
    await lasting.terminate();
    const saved = await agent.saved();
    await agent.close();
    return {
      products: items.map(({ product_no }) => product_no), open: open instanceof OpenSession, phase, ended: open.phase, proxy, password: read.proxy.password,
      raw: meta(read).raw, seen, changed: rotated.proxy.full_url.reveal() !== proxy, again, live: handle.phase, lasting: lasting.session_id, renewed: renewed.session_id, saved: saved.map(({ holds, intent }) => [holds, intent]),
    };
  }, WANTED);
  assert.ok(told.products.includes(WANTED.product_no));
  assert.deepEqual([told.open, told.phase, told.again, told.ended, told.live], [true, "ready", "ready", "ended", "ended"]);
  assert.match(told.proxy, /^socks5/);
  assert.equal(told.password, undefined);
  assert.match(told.raw, /"session_id"/);
  assert.deepEqual(told.seen, { verdict: "rotate", reason: "http_403" });
  assert.ok(told.changed);
  assert.deepEqual(told.saved, [["accepted", "job-17"]]);
  assert.equal(told.renewed, told.lasting);
  const state = await service.state();
  assert.deepEqual(state.sessions.map(({ status, rotations }) => [status, rotations]), [["terminated", 1], ["terminated", 0]]);
  assert.deepEqual(state.charges.map(({ operation }) => operation), ["create_session", "create_session", "renew_session"]);
  assert.deepEqual(page.told, []);
});

test("what callers do wrong is one clear error each, and nothing is sent", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  const told = await page.evaluate(async (wanted) => {
    const { AgentClient, IndexedDBStore, HoplineError } = hopline;
    let sent = 0;
    const agent = new AgentClient({ ...service, store: new IndexedDBStore("records"), fetch: (...all) => ((sent += 1), fetch(...all)) });
    const calls = [
      () => agent.createSession(), () => agent.createSession(null), () => agent.createSession({ ...wanted, quantity: -1 }), () => agent.createSession({ ...wanted, quantity: 10n }),
      () => agent.createSession({ ...wanted, colour: 1 }), () => agent.createSession(wanted, null), () => agent.createSession(wanted, { intent: "" }), () => agent.createSession(wanted, { attempt: 1 }),
      () => agent.createSession(wanted, { signal: 7 }), () => agent.openSession(window), () => agent.getSession({ session_id: ".." }), () => agent.observe("s", "nothing"), () => agent.settle("r", "perhaps"),
      async () => new AgentClient({ ...service, apikey: "canary" }), async () => new AgentClient({ ...service, store: {} }), async () => new AgentClient({ ...service, fetch: 7 }),
      async () => new AgentClient({ ...service, baseUrl: "//[" }), async () => new AgentClient({ ...service, baseUrl: 7 }),
    ];
    const errors = [];
    for (const call of calls) errors.push(await call().then(() => "was taken", (error) => [error instanceof HoplineError, error.kind, error.effect, error.message]));
    const shared = new IndexedDBStore("shared");
    const two = [1, 2].map(() => new AgentClient({ ...service, store: shared }));
    await two[0].saved();
    const busy = await two[1].createSession(wanted).catch(({ kind }) => kind);
    await agent.close();
    const closed = await agent.getBalance().catch(({ kind, message }) => [kind, message]);
    return { errors, sent, busy, closed };
  }, WANTED);
  for (const [ours, kind, effect, message] of told.errors) {
    assert.deepEqual([ours, kind, effect], [true, "invalid", "none"], message);
    assert.doesNotMatch(message, /wasm|panick|unreachable|undefined|\[object|canary/);
  }
  assert.deepEqual([told.sent, told.busy, told.closed[0]], [0, "misuse", "misuse"]);
  assert.equal((await service.state()).charges.length, 0);
});
