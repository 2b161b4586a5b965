// AsyncLocalStorage: what a call does for its caller runs in its caller's context, whoever is at work when it does.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";

import { AgentClient } from "hopline";

import { OwnStore } from "./lib/own-store.mjs";
import { WANTED } from "./lib/sandbox.mjs";

test("what is resumed together runs in the context of whoever resumes it, and says why it failed", async (t) => {
  const tenant = new AsyncLocalStorage();
  const answer = (data, status = 200) => Response.json({ success: true, data, meta: { request_id: "r", timestamp: new Date().toISOString() } }, { status });
  const client = (fetch, store) => {
    const agent = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", fetch, store, retry: { backoffMs: 1 } });
    t.after(() => agent.close());
    return agent;
  };
  const store = new OwnStore();
  const first = client(async () => Promise.reject(new Error("reset")), store);
  // More than are resumed at a time.
  const intents = Array.from({ length: 20 }, (_, n) => `job-${n}`);
  for (const intent of intents) await assert.rejects(first.createSession({ ...WANTED, product_no: intent }, { intent, attempts: 1 }), { kind: "in_doubt" });
  await first.close();
  const whose = new Map();
  const note = (what) => whose.set(what, [...(whose.get(what) ?? []), tenant.getStore()]);
  const sent = new Map();
  const fetch = async (url, { method, body }) => {
    const what = body ? JSON.parse(new TextDecoder().decode(body)).product_no : new URL(url).pathname.split("/ses-").at(-1);
    note(`send ${what}`);
    sent.set(what, (sent.get(what) ?? 0) + 1);
    if (what === "job-7" || (sent.get(what) === 1 && method === "POST")) throw new Error(`the network of ${what} is gone`);
    return answer({ session_id: `ses-${what}`, session_type: "dynamic", status: "active", balance: 1 }, method === "POST" ? 202 : 200);
  };
  for (const call of ["claim", "put"]) {
    const own = store[call].bind(store);
    store[call] = (...given) => (note(call), own(...given));
  }
  const second = tenant.run("the maker", () => client(fetch, store));
  const [resumed, other] = await Promise.all([tenant.run("ann", () => second.resumeAll({ attempts: 2 })), tenant.run("bob", () => second.openSession({ ...WANTED, product_no: "bobs" }, { intent: "bobs" }))]);
  assert.equal(other.session_id, "ses-bobs");
  const [lost, ...more] = resumed.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  assert.deepEqual([resumed.length, more, lost.kind, lost.intent, lost.cause.message], [20, [], "in_doubt", "job-7", lost.cause.message]);
  assert.match(lost.cause.cause?.message ?? lost.cause.message, /the network of job-7 is gone/);
  assert.deepEqual(new Set(whose.get("send bobs")), new Set(["bob"]));
  for (const intent of intents) assert.deepEqual(whose.get(`send ${intent}`), ["ann", "ann"], intent);
  // A put for no call's sake is the program's own.
  for (const call of ["claim", "put"]) assert.deepEqual([...new Set(whose.get(call))].filter(Boolean).sort(), ["ann", "bob"], call);
});

test("repeats, store calls, events and logs of a call run in its caller's context", async (t) => {
  const tenant = new AsyncLocalStorage();
  /** By tenant: what was done in its context. */
  const done = { A: [], B: [], C: [], made: [] };
  const note = (what) => (done[tenant.getStore()] ?? []).push(what);
  const sent = {};
  // Each first answer is lost, and a session is not usable at once; the tenant is in what was asked for.
  const fetch = async (url, { method, body, headers }) => {
    const { pathname } = new URL(url);
    const who = body ? JSON.parse(new TextDecoder().decode(body)).product_no : (new Headers(headers).get("x-tenant") ?? pathname.split("-").at(-1));
    note(`${method} of ${who}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    sent[`${method} ${who}`] = (sent[`${method} ${who}`] ?? 0) + 1;
    if (sent[`${method} ${who}`] === 1) return new Response("busy", { status: 503 });
    const status = method === "POST" ? "provisioning" : "active";
    return Response.json({ success: true, data: { session_id: `ses-${who}`, session_type: "dynamic", status, created_at: "2026-01-01T00:00:00Z" } }, { status: method === "POST" ? 202 : 200 });
  };
  const store = new OwnStore();
  for (const call of ["claim", "put", "delete"]) {
    const own = store[call].bind(store);
    store[call] = (...given) => (note(`store ${call} ${given[0]}`), own(...given));
  }
  const told = [];
  const log = { debug: (_, { event, operation }) => told.push([tenant.getStore(), event, operation]) };
  const agent = tenant.run("made", () => new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", fetch, store, log, retry: { backoffMs: 20 } }));
  t.after(() => agent.close());
  const events = [];
  agent.onEvent(({ event, intent }) => intent && events.push([tenant.getStore(), intent, event]));
  const opened = await Promise.all(["A", "B", "C"].map((name, n) => new Promise((resolve) => setTimeout(resolve, 7 * n)).then(() => tenant.run(name, () => agent.openSession({ ...WANTED, product_no: name }, { intent: `job-${name}` })))));
  assert.deepEqual(opened.map(({ session_id }) => session_id), ["ses-A", "ses-B", "ses-C"]);
  for (const name of ["A", "B", "C"]) {
    const sends = done[name].filter((what) => what.includes(" of "));
    assert.ok(sends.length >= 3 && sends.every((what) => what.endsWith(`of ${name}`)), `${name}: ${sends}`);
    assert.ok(done[name].some((what) => what.startsWith("store claim")) && done[name].some((what) => what.startsWith("store put")), done[name].join());
    assert.deepEqual([...new Set(events.filter(([, intent]) => intent === `job-${name}`).map(([who]) => who))], [name]);
  }
  assert.deepEqual(done.made, [], "nothing runs in the context in which the client was made");
  for (const event of ["began", "sent", "answered", "stored", "repeating", "ended"]) {
    // A call of the store for no call's sake is the program's own, and not of whatever made the client.
    const whose = new Set(told.filter(([, one]) => one === event).map(([who]) => who));
    if (event === "stored") whose.delete(undefined);
    assert.deepEqual([...whose].sort(), ["A", "B", "C"], event);
  }
});
