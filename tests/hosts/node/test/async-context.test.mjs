// AsyncLocalStorage: what a call does for its caller runs in its caller's context, whoever is at work when it does.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";

import { AgentClient } from "hopline";

import { OwnStore } from "./lib/own-store.mjs";
import { WANTED } from "./lib/sandbox.mjs";

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
    // What the store is asked for no call's sake is the program's own, and not of whatever made the client.
    const whose = new Set(told.filter(([, one]) => one === event).map(([who]) => who));
    if (event === "stored") whose.delete(undefined);
    assert.deepEqual([...whose].sort(), ["A", "B", "C"], event);
  }
});
