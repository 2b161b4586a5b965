// The life of a session over real HTTP, and what callers see of it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";

import * as hopline from "hopline";
import { AgentClient, FolderStore, HoplineError, OpenSession, ResellerClient, meta } from "hopline";

import { OwnStore } from "./lib/own-store.mjs";
import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

/** Sends with the key that the service knows, as if the client's own had been it before. */
const renewed = ({ api_key }) => (url, init) => fetch(url, { ...init, headers: init.headers.map(([name, value]) => [name, value.replace("the-key-before", api_key)]) });

test("a session is bought, read, rotated, judged and ended", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "300");
  const agent = service.agent();
  const { items } = await agent.listProducts({ type: "dynamic", limit: 100 });
  assert.ok(items.some((item) => item.product_no === WANTED.product_no));
  assert.equal((await agent.getBalance()).balance, 100);
  const open = await agent.openSession({ ...WANTED, quantity: "0.5" }, { intent: "job-17", credentials: true });
  assert.ok(open instanceof OpenSession);
  assert.deepEqual([open.phase, open.session.status], ["ready", "active"]);
  assert.match(open.session.proxy.full_url.reveal(), /^socks5/);
  const read = await agent.getSession({ session_id: open.session_id });
  assert.equal(read.proxy.password, undefined);
  const { raw, requestId, ...more } = meta(read);
  assert.deepEqual([read, more], [JSON.parse(raw), { httpStatus: 200, attempts: 1, phase: "ready" }]);
  assert.match(requestId, /./);
  assert.deepEqual(await open.observe({ status: 403 }), { verdict: "rotate", reason: "http_403" });
  assert.equal((await open.rotate({ reason: "http_403" })).session_id, open.session_id);
  assert.equal((await open.wait()).phase, "ready");
  await open.terminate();
  assert.deepEqual([open.phase, open.session.status], ["ended", "terminated"]);
  const state = await service.state();
  assert.deepEqual(state.sessions.map(({ status, rotations }) => [status, rotations]), [["terminated", 1]]);
  assert.equal(state.charges.length, 1);
});

test("a session that is not usable at its deadline is an error that leads to it", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "3600000");
  const statuses = async () => (await service.state()).sessions.map(({ status }) => status);
  const agent = service.agent();
  const opens = (options) => agent.openSession(WANTED, { deadlineMs: 0, ...options }).then(assert.fail, (error) => error);
  const named = await opens({ intent: "job-17" });
  assert.deepEqual([named.kind, named.effect, named.intent, named.advice], ["not_ready", "done", "job-17", "wait_session"]);
  assert.ok(named.record && named.session instanceof OpenSession && !("session" in JSON.parse(JSON.stringify(named))));
  assert.deepEqual([named.session.session_id, named.session.phase, named.session.session.status], [named.session_id, "pending", "creating"]);
  assert.equal((await agent.resumeIntent("job-17", { deadlineMs: 0 }).catch((error) => error)).session.session_id, named.session_id);
  // Without an intent nothing else leads to it.
  assert.equal((await opens({})).session.phase, "ended");
  assert.deepEqual(await statuses(), ["creating", "terminated"]);
  const kept = await opens({ keep: true });
  assert.equal((await agent.waitSession(kept.session_id, { deadlineMs: 0 }).catch((error) => error)).effect, "none");
  await kept.session.terminate();
  assert.equal((await agent.openSession(WANTED, { deadlineMs: 0, allowPending: true })).phase, "pending");
  await service.control("clock", { advance_ms: 3_600_000 });
  const open = await agent.openSession(WANTED, { intent: "job-17" });
  assert.deepEqual([open.session_id, open.phase, (await service.state()).charges.length], [named.session_id, "ready", 4]);
});

test("a block gives a session that rotates by itself a new exit without a further call", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100");
  const agent = service.agent();
  const open = await agent.openSession(WANTED, { credentials: true, autoRotate: true });
  assert.deepEqual(await open.observe({ status: 200 }), { verdict: "keep" });
  const [before] = (await service.state()).sessions;
  const { password } = open.session.proxy;
  const seen = await Promise.all(Array.from({ length: 20 }, () => open.observe({ status: 403 })));
  for (const { verdict, reason, session } of seen) {
    assert.deepEqual([verdict, reason, session.session_id], ["rotated", "http_403", open.session_id]);
    assert.equal(session.proxy.password, seen[0].session.proxy.password);
    assert.notEqual(session.proxy.password, password);
  }
  assert.equal(open.session.proxy.password, seen[0].session.proxy.password, "the session is as it is now");
  const { sessions, executions } = await service.state();
  assert.notEqual(sessions[0].exit, before.exit);
  assert.equal(executions.rotate_session, 1);
  const again = await open.observe({ status: 403 });
  assert.equal(again.verdict, "unsure");
  assert.match(again.why, /a moment ago/);
  const refused = await agent.openSession({ session_type: "static", product_no: "static-us", duration: 1 }, { autoRotate: true }).catch((error) => error);
  assert.deepEqual([refused.kind, refused.field], ["invalid", "autoRotate"]);
});

test("a rotation by hand brings the new login to whoever had the old one", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const open = await agent.openSession(WANTED, { credentials: true });
  const { password } = open.session.proxy;
  const rotated = await open.rotate();
  assert.match(rotated.proxy.password.reveal(), /./);
  assert.notEqual(rotated.proxy.password, password);
  assert.equal(open.session, rotated);
  const without = await agent.openSession(WANTED, { credentials: false });
  await without.rotate();
  assert.equal(without.session.proxy.password, undefined);
});

test("why a session did not rotate is heard where it was seen, and a signal gives the rotation up", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100");
  const agent = service.agent({ retry: { attempts: 1 } });
  const open = await agent.openSession(WANTED, { autoRotate: true });
  await service.fault({ kind: "error", code: "BACKEND_ERROR" }, "rotate_session");
  const failed = await open.observe("captcha").catch((error) => error);
  assert.deepEqual([failed.operation, failed.code], ["rotate_session", "BACKEND_ERROR"]);
  const other = await agent.openSession(WANTED, { autoRotate: true });
  const signal = AbortSignal.abort("enough");
  const given = await other.observe("block", { signal }).catch((error) => error);
  assert.deepEqual([given.kind, given.operation], ["cancelled", "rotate_session"]);
  assert.equal((await service.state()).sessions[1].rotations, 0);
});

test("the same intent twice at once, twice in a row and after a restart buys once", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100");
  const path = folder();
  const first = service.agent({ store: new FolderStore(path) });
  const both = await Promise.all([1, 2].map(() => first.openSession(WANTED, { intent: "job-17" })));
  both.push(await first.openSession(WANTED, { intent: "job-17" }));
  await first.close();
  const second = service.agent({ store: new FolderStore(path) });
  both.push(await second.openSession(WANTED, { intent: "job-17" }));
  assert.equal(new Set(both.map((open) => open.session_id)).size, 1);
  assert.equal((await service.state()).charges.length, 1);
  await assert.rejects(second.openSession({ ...WANTED, quantity: 2 }, { intent: "job-17" }), { kind: "invalid", field: "intent" });
});

test("an intent is one client's alone among all that share a folder", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const [one, two] = [1, 2].map(() => service.agent({ store: new FolderStore(path) }));
  const { session_id } = await one.openSession(WANTED, { intent: "job-17" });
  await assert.rejects(two.openSession(WANTED, { intent: "job-17" }), { kind: "busy", effect: "none", intent: "job-17" });
  const forget = async () => one.forget((await one.saved())[0].record);
  await assert.rejects(forget(), { kind: "refused", isRefusedByUs: true, advice: "terminate_session", session_id });
  assert.equal(await one.releaseSession(session_id), true);
  // A session is put once more when it is let go of.
  for (let looks = 0; looks < 1000 && (await one.saved())[0].whose === "mine"; looks++);
  assert.equal(await forget(), true);
  await two.openSession(WANTED, { intent: "job-17" });
  // Of two at once one has it; the other may have it once that one is closed, and buys nothing.
  const tried = await Promise.allSettled([one, two].map((agent) => agent.openSession(WANTED, { intent: "job-18" })));
  const winner = tried.findIndex(({ status }) => status === "fulfilled");
  assert.equal(tried.filter(({ status }) => status === "fulfilled").length, 1);
  assert.deepEqual([tried[1 - winner].reason.kind, tried[1 - winner].reason.effect], ["busy", "none"]);
  assert.equal((await service.state()).charges.length, 3);
  const [had, other] = winner === 0 ? [one, two] : [two, one];
  await had.close();
  const taken = await other.openSession(WANTED, { intent: "job-18" });
  assert.equal(taken.session_id, tried[winner].value.session_id);
  assert.equal((await service.state()).charges.length, 3);
});

test("a client leaves the records of another account to their owner", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const first = service.agent({ store: new FolderStore(path) });
  await first.openSession(WANTED, { intent: "job-17" });
  await first.close();
  const other = service.agent({ apiKey: "another-key", store: new FolderStore(path) });
  assert.deepEqual((await other.saved()).map(({ holds, reason, session_id }) => [holds, reason, session_id]), [["refused", "other_account", undefined]]);
  const again = service.agent({ store: new FolderStore(path) });
  assert.deepEqual((await again.saved()).map(({ holds, intent, whose }) => [holds, intent, whose]), [["session", "job-17", "free"]]);
});

test("an intent that another key began buys nothing again, and goes on once the account is said to be the same", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const first = service.agent({ apiKey: "the-key-before", fetch: renewed(service), store: new FolderStore(path) });
  const { session_id } = await first.openSession(WANTED, { intent: "job-17" });
  const other = service.agent({ store: new FolderStore(path) });
  await assert.rejects(other.openSession(WANTED, { intent: "job-17" }), { kind: "busy", effect: "none" }, "its client still lives");
  await first.close();
  const refused = { kind: "invalid", effect: "none", field: "intent", intent: "job-17", message: /`sameAccount`.*`account`/ };
  await assert.rejects(other.openSession(WANTED, { intent: "job-17" }), refused);
  await assert.rejects(other.resumeIntent("job-17"), { kind: "store", effect: "unknown", message: /another account/ });
  assert.equal((await other.openSession(WANTED, { intent: "job-18" })).phase, "ready");
  await other.close();
  assert.equal((await service.state()).charges.length, 2);
  const same = service.agent({ sameAccount: true, store: new FolderStore(path) });
  assert.equal((await same.openSession(WANTED, { intent: "job-17" })).session_id, session_id);
  assert.equal((await service.state()).charges.length, 2);
  // The intent is that client's now, as any other one is.
  await assert.rejects(service.agent({ store: new FolderStore(path) }).openSession(WANTED, { intent: "job-17" }), { kind: "busy" });
  assert.equal((await service.state()).charges.length, 2);
});

test("accounts that are named have intents of their own", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const open = async (account) => {
    const agent = service.agent({ account, store: new FolderStore(path) });
    const { session_id } = await agent.openSession(WANTED, { intent: "job-17" });
    await agent.close();
    return session_id;
  };
  const [one, two] = [await open("one"), await open("two")];
  assert.notEqual(one, two);
  assert.deepEqual([await open("one"), await open("two")], [one, two]);
});

test("a lost answer is asked about, and a doubt can be resumed or settled", async (t) => {
  const service = await sandbox(t);
  const store = new OwnStore();
  const agent = service.agent({ store });
  await service.fault({ kind: "drop_after" }, "create_session");
  assert.equal((await agent.openSession(WANTED)).phase, "ready");
  await service.fault({ kind: "drop_after" }, "create_session");
  const error = await agent.openSession(WANTED, { intent: "b", attempts: 1 }).catch((error) => error);
  assert.ok(error instanceof HoplineError);
  assert.deepEqual([error.kind, error.effect, error.advice, error.intent], ["in_doubt", "unknown", "resume", "b"]);
  await agent.close();
  const next = service.agent({ store });
  const [doubt] = (await next.saved()).filter(({ holds }) => holds === "in_doubt");
  assert.equal(doubt.record, error.record);
  const resumed = await next.resume(doubt.record);
  assert.ok(resumed instanceof OpenSession);
  assert.equal((await service.state()).charges.length, 2);
  await service.fault({ kind: "drop_before" }, "create_session");
  const third = await next.openSession(WANTED, { intent: "c", attempts: 1 }).catch((error) => error);
  await assert.rejects(next.settle(third.record, "not_happened"), { kind: "refused", effect: "none", advice: "wait" });
  assert.equal(await next.settle(third.record, "not_happened", { early: true }), true);
  assert.equal(await next.settle(third.record, "not_happened", { early: true }), false);
  const all = await next.resumeAll();
  assert.ok(all.every(({ status, value }) => status === "fulfilled" && value instanceof OpenSession));
});

test("an intent is resumed as a record is, and one that stands for nothing resumes nothing", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const first = service.agent({ store: new FolderStore(path) });
  assert.equal(await first.resumeIntent("job-17"), undefined);
  const { session_id } = await first.openSession(WANTED, { intent: "job-17" });
  const other = service.agent({ store: new FolderStore(path) });
  await assert.rejects(other.resumeIntent("job-17"), { kind: "busy", effect: "unknown", session_id });
  await first.close();
  const resumed = await other.resumeIntent("job-17", { credentials: true, deadlineMs: 60_000 });
  assert.deepEqual([resumed instanceof OpenSession, resumed.session_id, resumed.phase], [true, session_id, "ready"]);
  assert.match(resumed.session.proxy.password.reveal(), /./);
  for (const wrong of [7, "", "job-\ud800"]) await assert.rejects(other.resumeIntent(wrong), { kind: "invalid", field: "intent" });
  await assert.rejects(other.resumeIntent("job-17", { deadline: 1 }), { kind: "invalid", field: "options" });
  await resumed.terminate();
  for (const start of [() => other.openSession(WANTED, { intent: "job-17" }), () => other.resumeIntent("job-17")]) {
    const error = await start().catch((error) => error);
    assert.deepEqual([error.kind, error.effect, error.advice, error.session_id], ["ended", "none", "new_intent", session_id], String(error));
  }
  assert.equal((await service.state()).charges.length, 1);
});

test("a signal gives a call up, and the error says whether it may have been sent", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const early = await agent.openSession(WANTED, { signal: AbortSignal.abort() }).catch((error) => error);
  assert.deepEqual([early.kind, early.effect], ["cancelled", "none"]);
  await service.fault({ kind: "delay", ms: 60_000 }, "create_session");
  const began = performance.now();
  const late = await agent.createSession(WANTED, { signal: AbortSignal.timeout(200), intent: "a" }).catch((error) => error);
  assert.deepEqual([late.kind, late.effect, late.cause.name], ["cancelled", "unknown", "TimeoutError"]);
  assert.ok(performance.now() - began < 55_000, "nobody waits for what is given up");
});

test("two who wait for one purchase can both give it up", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  await service.fault({ kind: "delay", ms: 60_000 }, "create_session");
  const began = performance.now();
  const ended = await Promise.allSettled([100, 300].map((ms) => agent.createSession(WANTED, { signal: AbortSignal.timeout(ms), intent: "a" })));
  assert.deepEqual(ended.map(({ reason }) => reason.kind), ["cancelled", "cancelled"]);
  assert.ok(performance.now() - began < 55_000, "the request is aborted with the last of them");
});

test("events tell what happens, to each who listens", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100");
  const agent = service.agent();
  const [one, two] = [agent.events(), agent.events()];
  await service.fault({ kind: "drop_before" }, "create_session");
  await agent.openSession(WANTED, { intent: "job-17" });
  const stop = agent.close();
  const told = [];
  for await (const event of one) told.push(event.event);
  await stop;
  assert.deepEqual(told, ["repeating", "charged", "accepted", "status"]);
  assert.equal((await two.next()).value.because.kind !== undefined, true);
  assert.throws(() => agent.events(), { kind: "misuse" });
});

test("each who waits for an event gets one, and nobody waits once it is over", async (t) => {
  const agent = (await sandbox(t, "--provisioning-ms", "100")).agent();
  const events = agent.events();
  const waiting = [events.next(), events.next(), events.next(), events.next()];
  await agent.openSession(WANTED);
  const told = await Promise.all(waiting.slice(0, 3));
  assert.deepEqual(told.map(({ value }) => value.event), ["charged", "accepted", "status"]);
  await agent.close();
  assert.deepEqual([await waiting[3], await events.next()], Array(2).fill({ done: true, value: undefined }));
});

test("disposing of a session ends it, of a client ends nothing", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const [ended, kept] = [await agent.openSession(WANTED), await agent.openSession(WANTED, { keep: true })];
  const given = await agent.openSession(WANTED);
  assert.equal(await given.release(), true);
  await given[Symbol.asyncDispose]();
  await ended[Symbol.asyncDispose]();
  await ended[Symbol.asyncDispose]();
  await kept[Symbol.asyncDispose]();
  await agent[Symbol.asyncDispose]();
  const { sessions } = await service.state();
  assert.deepEqual(sessions.map(({ status }) => status).sort(), ["active", "active", "terminated"]);
});

test("import and require give the same package", () => {
  const required = createRequire(import.meta.url)("hopline");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(hopline).filter((name) => name !== "default" && name !== "module.exports").sort());
  assert.equal(required.HoplineError, HoplineError);
});

test("whatever is declared as a value is there", () => {
  const text = readFileSync(join(dirname(createRequire(import.meta.url).resolve("hopline")), "hopline.d.mts"), "utf8");
  const names = [...text.matchAll(/^export (?:class|function|const|enum) (\w+)/gm)].map(([, name]) => name);
  assert.ok(names.length > 12);
  assert.deepEqual(names.sort(), Object.keys(hopline).filter((name) => name !== "default" && name !== "module.exports").sort());
});

test("every operation that is declared is a method, and is documented", () => {
  const folder = dirname(createRequire(import.meta.url).resolve("hopline"));
  for (const name of ["hopline.d.mts", "hopline.d.cts"]) {
    const text = readFileSync(join(folder, name), "utf8");
    for (const [api, client, least] of [["Agent", AgentClient, 21], ["Reseller", ResellerClient, 34]]) {
      const [, operations] = new RegExp(`^export interface ${api}Operations \\{\\n([^]*?)^\\}$`, "m").exec(text);
      const methods = [...operations.matchAll(/^   \*\/\n  (\w+)(?:<\w+ = unknown>)?\(/gm)].map(([, method]) => method);
      assert.equal(methods.length, operations.match(/^  \w+[(<]/gm).length);
      assert.ok(methods.length >= least, `${methods.length}`);
      for (const method of methods) assert.equal(typeof client.prototype[method], "function", method);
    }
    const [, shared] = /^export interface ClientMethods<Handle>.*\n([^]*?)^\}$/m.exec(text);
    for (const [, method] of shared.matchAll(/^  (\w+)[(<]/gm)) {
      for (const client of [AgentClient, ResellerClient]) assert.equal(typeof client.prototype[method], "function", method);
    }
  }
});
