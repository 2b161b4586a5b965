// Every wait ends: a result that is there at once, a signal before anything is sent, a store that is always busy.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";

import { AgentClient } from "hopline";

import { OwnStore } from "./lib/own-store.mjs";
import { WANTED } from "./lib/sandbox.mjs";

const answer = (data, headers) => new Response(JSON.stringify({ success: true, data, meta: { request_id: "r" } }), { headers: { "content-type": "application/json", ...headers } });

function client(t, fetch, more) {
  const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", fetch, ...more });
  t.after(() => agent.close());
  return agent;
}

/** The result of a wait, or `hangs`: nothing here needs the network or a timer. */
function ends(promise) {
  let timer;
  const hangs = new Promise((resolve) => (timer = setTimeout(resolve, 60_000, "hangs")));
  return Promise.race([promise.catch((error) => error), hangs]).finally(() => clearTimeout(timer));
}

test("resuming all ends with what ends at once, and so does closing", async (t) => {
  const store = new OwnStore();
  const first = client(t, async () => { throw new Error("reset"); }, { store });
  await assert.rejects(first.createSession(WANTED, { attempts: 1 }), { kind: "in_doubt" });
  await first.close();
  // By the service's clock the key is too old.
  const date = new Date(Date.now() + 30 * 3600_000).toUTCString();
  const second = client(t, async () => answer({ balance: 1 }, { date }), { store });
  assert.equal((await second.getBalance()).balance, 1);
  const [resumed] = await ends(second.resumeAll());
  assert.deepEqual([resumed.status, resumed.reason?.kind, resumed.reason?.effect], ["rejected", "in_doubt", "unknown"]);
  assert.notEqual(await ends(second.close()), "hangs");
});

test("a signal gives up all that is still resumed, though some of it has ended", async (t) => {
  const store = new OwnStore();
  const first = client(t, async () => { throw new Error("reset"); }, { store });
  for (const intent of ["job-17", "job-18"]) await assert.rejects(first.createSession(WANTED, { intent, attempts: 1 }), { kind: "in_doubt" });
  await first.close();
  const given = new AbortController();
  let sent = 0;
  const second = client(t, async (_, { method, signal }) => {
    // Other requests, such as that for the service's time.
    if (method === "GET") return answer({ balance: 1 }, { date: new Date().toUTCString() });
    sent += 1;
    if (sent === 1) return answer({ session_id: "s-1", status: "active" });
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }, { store });
  const resuming = second.resumeAll({ signal: given.signal });
  // One has its answer, which is kept; nobody answers the other one.
  const accepted = async () => (await second.saved()).some(({ session_id }) => session_id === "s-1");
  do await new Promise((resolve) => setTimeout(resolve, 10));
  while (sent < 2 || !(await accepted()));
  await new Promise((resolve) => setTimeout(resolve, 10));
  given.abort(new Error("enough"));
  const error = await ends(resuming);
  assert.deepEqual([error.kind, error.operation, error.cause?.message], ["cancelled", "resume_all", "enough"], String(error));
  await second.close();
  const third = client(t, async () => answer({ balance: 1 }), { store });
  assert.deepEqual((await third.saved()).map(({ holds }) => holds).sort(), ["accepted", "in_doubt"]);
});

test("a rotation that ends at once is heard of", async (t) => {
  const active = { session_id: "s-1", status: "active", session_type: "dynamic" };
  let throttled = false;
  const agent = client(t, async () => {
    if (!throttled) return answer(active);
    return new Response('{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow"}}', { status: 429, headers: { "content-type": "application/json", "retry-after": "3600" } });
  });
  const open = await agent.openSession(WANTED, { autoRotate: true });
  throttled = true;
  await agent.getBalance({}, { attempts: 1 }).catch(() => {});
  const rotated = await ends(open.observe({ status: 403 }));
  assert.deepEqual([rotated.name, rotated.operation, typeof rotated.retry_at], ["HoplineError", "rotate_session", "number"], String(rotated));
});

test("a signal is heard before anything is sent, while the store is asked for the intent", async () => {
  const store = Object.assign(new OwnStore(), { claim: () => new Promise(() => {}) });
  let sent = 0;
  const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store, fetch: async () => ((sent += 1), answer({})) });
  const given = new AbortController();
  const call = agent.openSession(WANTED, { intent: "job-17", signal: given.signal });
  setTimeout(() => given.abort(new Error("enough")), 20);
  const error = await ends(call);
  assert.deepEqual([error.kind, error.effect, error.cause?.message, sent], ["cancelled", "unknown", "enough", 0], String(error));
});

test("an intent that a store says is busy is not sent", async (t) => {
  let sent = 0;
  const store = Object.assign(new OwnStore(), { claim: async () => ({ busy: undefined }) });
  const agent = client(t, async () => ((sent += 1), answer({})), { store });
  const error = await ends(agent.openSession(WANTED, { intent: "job-17" }));
  assert.deepEqual([error.name, error.kind, error.effect, error.intent, error.advice, sent], ["HoplineError", "busy", "none", "job-17", "wait_for_other", 0], String(error));
  assert.match(JSON.stringify(error), /another client/);
});

test("what was given up before it began is never sent", async (t) => {
  let sent = 0;
  const agent = client(t, async () => ((sent += 1), answer({ balance: 1 })));
  const signal = AbortSignal.abort(new Error("enough"));
  for (const call of [() => agent.getBalance({}, { signal }), () => agent.openSession(WANTED, { signal }), () => agent.resume("r", { signal }), () => agent.walkProducts({}, { signal }).pages().next()]) {
    const error = await call().catch((error) => error);
    assert.deepEqual([error.kind, error.effect, error.cause?.message], ["cancelled", "none", "enough"], String(error));
  }
  assert.equal(sent, 0);
});

test("a call that failed does not wait for the saves of others", async (t) => {
  const store = new OwnStore();
  let [busy, saves] = [true, 0];
  const agent = client(t, async (url, { body }) => {
    if (new TextDecoder().decode(body).includes("refused")) {
      return new Response('{"success":false,"error":{"code":"PRODUCT_NOT_FOUND","message":"no"}}', { status: 404, headers: { "content-type": "application/json" } });
    }
    throw new Error("reset");
  }, { store });
  const put = store.put.bind(store);
  store.put = async (...given) => {
    saves += 1;
    await new Promise((resolve) => setTimeout(resolve, 5));
    return put(...given);
  };
  // Two that take turns, so that something is being saved all the time.
  const others = [0, 2].map(async (delay) => {
    await new Promise((resolve) => setTimeout(resolve, delay));
    while (busy) await agent.createSession(WANTED, { attempts: 1 }).catch(() => {});
  });
  const error = await ends(agent.createSession({ ...WANTED, product_no: "refused" }, { intent: "job-17" }));
  busy = false;
  assert.deepEqual([error.kind, error.effect], ["refused", "none"], String(error));
  assert.ok(saves > 0);
  await Promise.all(others);
});

test("any number of calls may share a signal, which is left alone once they have ended", async (t) => {
  const warnings = [];
  const warned = (warning) => warnings.push(warning.name);
  process.on("warning", warned);
  t.after(() => process.off("warning", warned));
  const given = new AbortController();
  const agent = client(t, (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))));
  const calls = Array.from({ length: 20 }, () => agent.getBalance({}, { signal: given.signal }));
  const events = agent.events({ signal: given.signal });
  const all = Promise.allSettled(calls);
  assert.equal((await agent.saved()).length, 0);
  given.abort(new Error("enough"));
  assert.deepEqual(new Set((await ends(all)).map(({ reason }) => reason?.kind)), new Set(["cancelled"]));
  assert.equal((await ends(events.next())).done, true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([warnings, getEventListeners(given.signal, "abort").length], [[], 0]);
});
