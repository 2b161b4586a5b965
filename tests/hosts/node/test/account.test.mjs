// The account: who it is, its budget, its money, what is watched, and requests that no method is there for.
import assert from "node:assert/strict";
import { test } from "node:test";

import { HoplineError, Secret, meta } from "hopline";

import { sandbox } from "./lib/sandbox.mjs";

test("a budget keeps what is left out, takes what is said, and null is sent as null", async (t) => {
  const service = await sandbox(t);
  const bodies = [];
  const agent = service.agent({ fetch: (url, init) => (init.method === "PUT" && bodies.push(new TextDecoder().decode(init.body)), fetch(url, init)) });
  await agent.updateBudget({ daily_limit_usd: "50.10", key_limit_usd: 500, alert_thresholds: [50, 90] });
  const before = await agent.getBudget();
  assert.match(meta(before).raw, /50\.1.*500|500.*50\.1/);
  await agent.updateBudget({ key_limit_usd: null, paused: true });
  assert.match(meta(await agent.getBudget()).raw, /50\.1/);
  assert.deepEqual(bodies.map((body) => JSON.parse(body)), [{ daily_limit_usd: 50.1, key_limit_usd: 500, alert_thresholds: [50, 90] }, { key_limit_usd: null, paused: true }]);
  assert.ok(bodies[0].includes("50.1,"), "a decimal has one form");
  await assert.rejects(agent.updateBudget({ alert_thresholds: [101] }), { kind: "invalid", field: "alert_thresholds[0]" });
  await assert.rejects(agent.updateBudget({ daily_limit_usd: -1 }), { kind: "invalid", field: "daily_limit_usd" });
  assert.ok(Array.isArray((await agent.getUsageAlerts()).alerts));
  assert.ok(service.api_key.startsWith((await agent.getAccount()).api_key_prefix.slice(0, 3)));
});

test("a key is asked for, and an account is opened with credentials that only `reveal` shows, and that a client takes as they are", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent({ apiKey: undefined });
  const asked = await agent.requestApiKey({ email: "ann@example.com" });
  assert.equal(asked.status, "email_sent");
  const { mails } = await service.control("mailbox");
  assert.equal(mails.length, 1);
  const opened = await agent.registerAccount({ name: "Ann", contact_email: "ann@example.com" });
  assert.equal(typeof (await service.agent({ apiKey: opened.api_key }).getBalance()).balance, "number");
  assert.ok(opened.api_secret instanceof Secret && opened.api_secret.reveal().length > 3);
  await assert.rejects(agent.requestApiKey({ email: "no address" }), { kind: "invalid", field: "email" });
});

test("a balance is watched until a recharge is paid", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const order = await agent.createRecharge({ amount_usd: "10.50" }, { intent: "top-up" });
  const events = agent.events();
  const watching = agent.getBalance({}, { until: { at: "/balance", atLeast: "110.50" }, deadlineMs: 30_000 });
  for await (const { event, operation } of events) if (event === "watched" && operation === "get_balance") break;
  await service.control("pay", { order_id: order.order_id });
  const paid = await watching;
  assert.deepEqual([meta(paid).phase, paid.balance, "phase" in paid], ["ready", 110.5, false]);
  const listed = await agent.listTransactions({}, { until: { at: "/items/0/type", is: ["recharge"] }, deadlineMs: 0 });
  assert.equal(meta(listed).phase, "ready", meta(listed).raw);
  const never = await agent.getBalance({}, { until: { at: "/balance", atLeast: 1e6 }, deadlineMs: 0 });
  assert.deepEqual([meta(never).phase, never.balance], ["pending", 110.5]);
  assert.equal(meta(await agent.getBalance()).phase, undefined);
  assert.equal(typeof (await agent.getPricing()).currency, "string");
});

test("a watch that says nothing, or is of a write, is refused", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  for (const until of [{}, { at: "/balance" }, { at: "balance", atLeast: 1 }, { at: "/balance", atLeast: "x" }, { at: "/balance", is: "paid" }, { at: "/a", is: ["b"], colour: 1 }, 7]) {
    await assert.rejects(agent.getBalance({}, { until }), { kind: "invalid", effect: "none" }, JSON.stringify(until));
  }
  await assert.rejects(agent.createRecharge({ amount: 10 }, { until: { at: "/status", is: ["paid"] } }), { kind: "invalid", field: "until" });
  assert.equal((await service.state()).orders.length, 0);
  const given = AbortSignal.timeout(300);
  await assert.rejects(agent.getBalance({}, { until: { at: "/balance", atLeast: 1e6 }, signal: given }), { kind: "cancelled", effect: "none" });
});

test("a request that no method is there for has the key, the retries and the errors of any other", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  assert.deepEqual(await agent.request("GET", "/billing/balance"), await agent.getBalance());
  const page = await agent.request("GET", "/products", { query: { limit: "1", type: "static" } });
  assert.deepEqual(page.items.map(({ type }) => type), ["static"]);
  await service.fault({ kind: "drop_before" }, "get_balance");
  assert.equal((await agent.request("GET", "/billing/balance")).balance, 100);
  await service.fault({ kind: "drop_after" }, "update_budget");
  const write = () => agent.request("PUT", "/account/budget", { body: { daily_limit_usd: 7 }, safety: "keyed" }, { intent: "limit" });
  assert.match(JSON.stringify(await write()), /7/);
  await service.fault({ kind: "drop_after" }, "update_budget");
  const once = await agent.request("PUT", "/account/budget", { body: { daily_limit_usd: 8 } }).catch((error) => error);
  assert.deepEqual([once.kind, once.effect, once.operation, once.attempts], ["in_doubt", "unknown", "request", 1], once.stack);
  const unknown = await agent.request("GET", "/nowhere").catch((error) => error);
  assert.ok(unknown instanceof HoplineError);
  assert.deepEqual([unknown.kind, unknown.status], ["refused", 404], unknown.stack);
  const watched = await agent.request("GET", "/billing/balance", {}, { until: { at: "/balance", atLeast: 100 } });
  assert.equal(meta(watched).phase, "ready");
});

test("a request that leaves the base URL or says odd things is refused, and nothing is sent", async (t) => {
  const service = await sandbox(t);
  let sent = 0;
  const agent = service.agent({ fetch: (...all) => ((sent += 1), fetch(...all)) });
  const cases = [
    ["GET", "/../admin"], ["GET", "/a/%2e%2e/b"], ["GET", "//evil.example/x"], ["GET", "billing"], ["GET", "/a?b=c"], ["get", "/a"], ["TRACE", "/a"], ["GET"], [],
    ["GET", "/a", null], ["GET", "/a", 7], ["GET", "/a", { query: { n: 1 } }], ["GET", "/a", { safety: "hopefully" }], ["POST", "/a", { boddy: 1 }], ["POST", "/a", { body: 10n }],
    ["GET", "/a", {}, { headers: { "x-api-key": "other" } }], ["GET", "/a", {}, { intent: "job" }], ["POST", "/a", {}, { idempotencyKey: "k" }],
  ];
  for (const all of cases) await assert.rejects(agent.request(...all), { kind: "invalid", effect: "none" }, String(all));
  assert.equal(sent, 0);
});
