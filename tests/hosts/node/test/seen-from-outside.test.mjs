// The reports of a client while it works: `onEvent`, `log`, and OpenTelemetry's spans and metrics.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { FolderStore } from "hopline";
import { instrument, observePool } from "hopline/opentelemetry";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

test("each event has a level, sends have a duration, and nothing in them is secret", async (t) => {
  const service = await sandbox(t);
  const said = [];
  const note = (level) => (message, event) => said.push([level, message, event]);
  const agent = service.agent({ store: new FolderStore(folder()), log: { debug: note("debug"), info: note("info") } });
  const heard = [];
  const stop = agent.onEvent((event) => heard.push(event));
  agent.onEvent(() => {
    throw new Error("whoever looks on changes nothing");
  });
  const { session } = await agent.openSession(WANTED, { intent: "job-1", credentials: true });
  const [sent, answered] = ["sent", "answered"].map((word) => heard.filter(({ event, operation }) => event === word && operation === "create_session"));
  assert.deepEqual([sent.length, answered.length, sent[0].send], [1, 1, answered[0].send]);
  assert.deepEqual([answered[0].status, answered[0].level, answered[0].failure], [202, "debug", undefined]);
  assert.ok(answered[0].duration_ms > 0);
  const [accepted] = heard.filter(({ event }) => event === "accepted");
  assert.deepEqual([accepted.level, accepted.intent, accepted.session_id], ["info", "job-1", session.session_id]);
  assert.ok(heard.some(({ event, call, failed, duration_ms }) => event === "stored" && call === "put" && !failed && duration_ms > 0));
  // The log was told the same, as far as it has a method for the level.
  assert.deepEqual(said.map(([, , event]) => event), heard);
  assert.ok(said.every(([level, message, event]) => level === event.level && message.startsWith("hopline: ")));
  assert.ok(said.some(([level, message]) => level === "info" && message === "hopline: createSession: accepted"), inspect(said.map(([, message]) => message)));
  const { username, password } = session.proxy;
  for (const secret of [service.api_key, username.reveal(), password.reveal()]) assert.ok(!inspect([said, heard], { depth: 9 }).includes(secret));
  stop();
  const before = heard.length;
  await service.fault({ kind: "drop_before" }, "get_balance");
  await agent.getBalance();
  assert.deepEqual([heard.length, ...said.slice(-2).map(([, , { event }]) => event)], [before, "answered", "ended"]);
  assert.ok(said.some(([level, , { event }]) => level === "debug" && event === "repeating"));
  assert.ok(said.some(([, , { event, failure }]) => event === "answered" && failure === "closed"));
  for (const listener of [undefined, 7, {}]) assert.throws(() => agent.onEvent(listener), { kind: "invalid" });
});

test("OpenTelemetry has a span of each request, and the metrics of a pool", async (t) => {
  const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = tool("@opentelemetry/sdk-trace-base");
  const { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } = tool("@opentelemetry/sdk-metrics");
  const [spans, metrics] = [new InMemorySpanExporter(), new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)];
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  t.after(() => meterProvider.shutdown());
  const service = await sandbox(t, "--session-limit", "100");
  const agent = service.agent({ store: new FolderStore(folder()), dailyCapUsd: 90 });
  const stop = instrument(agent, { tracerProvider, meterProvider });
  await service.fault({ kind: "error", code: "SESSION_NOT_FOUND", status: 404 }, "get_session");
  await assert.rejects(agent.getSession({ session_id: "ses_none" }), { kind: "refused" });
  const [failed, operation] = spans.getFinishedSpans();
  assert.deepEqual([failed.name, failed.attributes["http.response.status_code"], failed.status.code], ["GET get_session", 404, 2]);
  assert.match(failed.attributes["url.path"], /\/sessions\/ses_none$/);
  assert.deepEqual([operation.name, operation.attributes["error.type"], operation.attributes["hopline.effect"], operation.status.code], ["hopline get_session", "refused", "none", 2]);
  assert.deepEqual([failed.parentSpanContext?.spanId ?? failed.parentSpanId, operation.attributes["hopline.advice"] === undefined], [operation.spanContext().spanId, false]);
  const pool = await agent.openPool("shop", { ...WANTED, size: 3 });
  const unobserve = observePool(pool, { meterProvider });
  await pool.withLease({}, (lease) => assert.equal(lease.observe(200), "keep"));
  await pool.withLease({}, async () => {
    await reader.forceFlush();
  });
  const read = () => {
    const all = metrics.getMetrics().at(-1).scopeMetrics.flatMap(({ metrics }) => metrics);
    return Object.fromEntries(all.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]));
  };
  const told = read();
  const of = (name, attributes = {}) => told[name]?.find((point) => Object.entries(attributes).every(([key, value]) => point.attributes[key] === value))?.value;
  const states = Object.fromEntries(told["hopline.pool.sessions"].map(({ attributes, value }) => [attributes.state, value]));
  assert.deepEqual([states.leased, Object.values(states).reduce((sum, count) => sum + count)], [1, 3]);
  assert.equal(of("hopline.pool.waiting", { "hopline.pool.name": "shop" }), 0);
  assert.equal(of("hopline.pool.acquire.duration", { "hopline.pool.name": "shop" }).count, 2);
  assert.equal(of("hopline.pool.lease.duration", { "hopline.pool.name": "shop" }).count, 1);
  assert.equal(of("hopline.pool.observations", { seen: "200" }), 1);
  assert.ok(of("hopline.request.duration", { "hopline.operation": "create_session" }).count >= 1);
  assert.ok(of("hopline.store.calls", { call: "claim" }) >= 1);
  assert.equal(of("hopline.purchases", { "hopline.operation": "create_session", result: "accepted" }), 1);
  assert.deepEqual([of("hopline.pool.blocked_everywhere"), of("hopline.pool.held")], [0, undefined]);
  assert.deepEqual([of("hopline.pool.purchases", { "hopline.pool.name": "shop", result: "accepted" }), of("hopline.pool.create.duration")?.count], [1, 1]);
  // A session that was blocked gets another exit once it is back.
  await pool.withLease({ target: "shop.example" }, (lease) => assert.equal(lease.observe("captcha"), "give_back"));
  await pool.withLease({ target: "shop.example" }, () => reader.forceFlush());
  assert.equal(read()["hopline.pool.rotations"][0].value, 1);
  assert.deepEqual(read()["hopline.pool.rotations"][0].attributes, { "hopline.pool.name": "shop", reason: "captcha" });
  unobserve();
  stop();
  const count = spans.getFinishedSpans().length;
  await agent.getBalance();
  assert.equal(spans.getFinishedSpans().length, count);
  assert.ok(spans.getFinishedSpans().every(({ kind, name }) => (kind === 2 ? /^(GET|POST) \w+$/ : /^hopline \w+$/).test(name)));
  assert.ok(!inspect([spans.getFinishedSpans().map(({ attributes }) => attributes), told], { depth: 9 }).includes(service.api_key));
});
