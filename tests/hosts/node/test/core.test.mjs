// The values that cross between Rust and JavaScript, by the class of the core, which the package's own code drives.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Core, StepKind } from "./lib/core.mjs";

const OPTIONS = '{"base_url":"https://api.example/v1","api_key":"canary","store":true}';
const BUY = '{"session_type":"dynamic","product_no":"p-1"}';
const NOW = [1700000000000, 0.5];

const bytes = (text) => new TextEncoder().encode(text);

/** A core, and what drives it. */
function driven() {
  const core = new Core(OPTIONS, new Uint8Array(16).fill(7));
  const keep = () => {
    if (core.call[0] === "claim") core.claimed(core.id, core.call[1], new Int32Array([-1]), new Uint8Array(), ...NOW);
    else if (core.call[0] === "list") core.listed(core.id, [], new Int32Array(), new Uint8Array(), [], false, ...NOW);
    else core.done(core.id, "done", ...NOW);
  };
  /** Goes on until a step of a kind comes, or a call of the store. */
  const until = (kind, call) => {
    for (let step; (step = core.poll(...NOW)) !== kind || (call !== undefined && core.call[0] !== call); ) {
      assert.notEqual(step, StepKind.Wait, `it waits, and no step ${kind} comes`);
      if (step === StepKind.Store) keep();
    }
  };
  const sent = (operation, params, options = "{}") => {
    const command = core.start(operation, params, options);
    if (params !== "{}") {
      until(StepKind.Store, "put");
      keep();
    }
    until(StepKind.Send);
    return command;
  };
  const answer = (status, text, headers = "") => core.respond(core.id, status, headers, bytes(text), false, ...NOW);
  return { core, until, keep, sent, answer };
}

function thrown(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  assert.fail("nothing was thrown");
}

test("the getters of other steps are undefined and never null", () => {
  const { core, until, keep } = driven();
  const names = ["until", "id", "command", "call", "head", "body", "timeoutMs", "sendBefore", "maxBody", "event"];
  const there = () => {
    for (const name of names) assert.notEqual(core[name], null, name);
    return names.filter((name) => core[name] !== undefined);
  };
  assert.deepEqual([core.poll(...NOW), there()], [StepKind.Wait, []]);
  core.start("create_session", BUY, '{"intent":"job-17"}');
  until(StepKind.Store, "claim");
  assert.deepEqual([there(), core.call.length, core.call[2]], [["id", "command", "call"], 3, 1]);
  keep();
  until(StepKind.Store, "put");
  assert.deepEqual(there(), ["id", "command", "call"]);
  const [method, name, data, how] = core.call;
  assert.deepEqual([method, typeof name, data instanceof Uint8Array, how], ["put", "string", true, { new: false, release: false }]);
  keep();
  until(StepKind.Send);
  assert.deepEqual(there(), ["id", "command", "head", "body", "timeoutMs", "sendBefore", "maxBody"]);
});

test("bodies are bytes of their own, and none is undefined", () => {
  const { core, until, sent, answer } = driven();
  sent("create_session", BUY);
  const { body } = core;
  assert.ok(body instanceof Uint8Array);
  const text = new TextDecoder().decode(body);
  assert.equal(JSON.parse(text).product_no, "p-1");
  // The body is no part of the core's memory.
  assert.equal(body.buffer.byteLength, body.byteLength);
  answer(202, '{"success":true,"data":{"session_id":"s-1","status":"creating"}}');
  until(StepKind.Completed);
  sent("get_balance", "{}");
  assert.deepEqual([core.body, core.head.split("\n")[1]], [undefined, "GET"]);
});

test("headers are lines both ways", () => {
  const { core, until, sent, answer } = driven();
  sent("get_balance", "{}");
  const [, method, url, ...headers] = core.head.split("\n");
  assert.deepEqual([method, url, headers.length % 2], ["GET", "https://api.example/v1/billing/balance", 0]);
  assert.equal(headers[headers.indexOf("x-api-key") + 1], "canary");
  answer(429, '{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow"}}', "retry-after\n7\nleft over");
  until(StepKind.Notify);
  assert.equal(core.event.because.code, "RATE_LIMIT_EXCEEDED");
  core.poll(...NOW);
  assert.ok(core.until >= 7000);
});

test("errors are plain objects, with what the service wrote as JSON.parse reads it", () => {
  const { core, until, sent, answer } = driven();
  const cases = [
    [() => new Core("{}", new Uint8Array(16)), "invalid"],
    [() => new Core('{"base_url":"https://x/v1"}', new Uint8Array(3)), "invalid"],
    [() => core.done(77, "done", ...NOW), "misuse"],
    [() => core.observe("s-1", "nothing", ...NOW), "invalid"],
  ];
  for (const [work, kind] of cases) {
    const error = thrown(work);
    assert.deepEqual([Object.getPrototypeOf(error), error.kind], [Object.prototype, kind]);
  }
  const command = sent("get_balance", "{}", '{"attempts":1}');
  const details = '{"price":0.1000000000000000055,"big":12345678901234567890123,"list":[null,true,4.10]}';
  answer(400, `{"success":false,"error":{"code":"INVALID_REQUEST","message":"no","details":${details}}}`);
  until(StepKind.Completed);
  const [how, error] = core.take(command);
  assert.deepEqual([how, error.kind, error.status, error.attempts], ["failed", "refused", 400, 1]);
  assert.deepEqual(error.details, JSON.parse(details));
  assert.deepEqual(["cause" in error, typeof error.message], [false, "string"]);
});

test("events and verdicts are plain objects", () => {
  const { core, keep, sent, answer } = driven();
  sent("open_session", BUY, '{"intent":"job-17","credentials":false}');
  answer(202, '{"success":true,"data":{"session_id":"s-1","status":"active"}}');
  const events = [];
  for (let step; (step = core.poll(...NOW)) !== StepKind.Wait; ) {
    if (step === StepKind.Notify) events.push(core.event);
    if (step === StepKind.Store) keep();
  }
  const [{ idempotency_key, ...charged }, accepted] = events;
  const told = { command: 1, operation: "create_session", intent: "job-17", session_id: "s-1" };
  assert.deepEqual([charged, accepted, events.length], [{ ...told, event: "charged" }, { ...told, event: "accepted" }, 2]);
  assert.equal(typeof idempotency_key, "string");
  assert.deepEqual(core.observe("s-1", '{"status":403}', ...NOW), { verdict: "rotate", reason: "http_403" });
  assert.equal(core.observe("s-2", '"captcha"', ...NOW), undefined);
  assert.deepEqual([core.releaseSession("s-1"), core.releaseSession("s-1")], [true, false]);
});

test("what a store answers is taken as it is meant, and what can't be read has failed", () => {
  const { core, until } = driven();
  let space;
  const saved = (more, ids, lengths, data, whose) => {
    const command = core.saved();
    until(StepKind.Store, "list");
    assert.deepEqual([core.call[0], core.call[2]], ["list", { open: false }]);
    space = core.call[1];
    core.listed(core.id, ids.map((id) => `${space}.${id}`), new Int32Array(lengths), bytes(data), whose, more, ...NOW);
    until(StepKind.Completed);
    return core.take(command);
  };
  const [one, two] = ["1", "2"].map((digit) => `i${digit.padStart(32, "0")}`);
  const [how, , raw] = saved(true, [one, two], [3, 2], "abc{}", ["free", "other"]);
  assert.equal(how, "answered");
  const page = JSON.parse(raw);
  assert.deepEqual([page.after, page.entries.map(({ record, whose, holds }) => [record.startsWith(`${space}.${two}.`) ? two : one, whose, holds])], [`${space}.${two}`, [[one, "free", "refused"], [two, "other", "refused"]]]);
  const [failed, error] = saved(false, [one], [2], "{}", ["nobody's"]);
  assert.deepEqual([failed, error.kind], ["failed", "store"]);
});

test("a result is taken once, and text of any letters comes back as it went", () => {
  const { core, until, sent, answer } = driven();
  const command = sent("get_balance", "{}");
  answer(200, JSON.stringify({ success: true, data: { odd: "\u{1F980} \u0000 é" } }));
  until(StepKind.Completed);
  assert.equal(core.command, command);
  const taken = core.take(command);
  assert.equal(taken[0], "answered");
  assert.equal(JSON.parse(taken[2]).odd, "\u{1F980} \u0000 é");
  assert.deepEqual([core.take(command), core.take(4e9)], [undefined, undefined]);
});

test("numbers that are no times stop nothing", () => {
  const { core } = driven();
  core.start("get_balance", "{}", "{}");
  for (const [unix, monotonic] of [[NaN, NaN], [Infinity, -Infinity], [-1, 1e300], [undefined, undefined]]) {
    assert.ok(Object.values(StepKind).includes(core.poll(unix, monotonic)));
  }
});
