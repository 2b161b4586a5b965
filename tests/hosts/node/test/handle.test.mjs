// A session as a handle: its verbs, what it shows, and what is made of the responses and errors of HTTP clients.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as listen } from "node:net";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import { CLIENTS } from "./lib/http-clients.mjs";
import { OwnStore } from "./lib/own-store.mjs";
import { WANTED, sandbox } from "./lib/sandbox.mjs";

test("a handle has verbs and shows the newest state, whoever has read it", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const open = await agent.openSession({ ...WANTED, protocol: "http" }, { credentials: true, intent: "job-1" });
  const other = await agent.resumeIntent("job-1", { credentials: true });
  assert.deepEqual([open.generation, open.phase, other.session.proxy], [0, "ready", open.session.proxy]);
  const before = open.session.proxy.password;
  assert.deepEqual(await open.observe(403), { verdict: "rotate", reason: "http_403" });
  const rotated = await open.rotate({ reason: "http_403" });
  assert.ok(rotated.proxy.password !== before && open.session.proxy.password === rotated.proxy.password);
  assert.deepEqual([open.generation, other.generation, other.session.proxy], [1, 1, open.session.proxy]);
  assert.deepEqual(open.proxy.undici(), other.proxy.undici());
  // A call of the client itself is seen as well; what it did not ask for is as it was.
  await agent.getSession({ session_id: open.session_id });
  assert.deepEqual([open.session.proxy.password, open.generation], [rotated.proxy.password, 1]);
  // A login that nobody asked for is not known any more.
  await agent.rotateSession({ session_id: open.session_id });
  assert.deepEqual([open.generation, open.session.proxy.password ?? null], [2, null]);
  assert.throws(() => open.proxy, { kind: "invalid", message: /`credentials`/ });
  await agent.getSession({ session_id: open.session_id, include_credentials: true });
  assert.ok(open.generation === 2 && open.session.proxy.password !== rotated.proxy.password);
  await open.refresh();
  assert.deepEqual([open.generation, open.session.status, open.session.proxy.password === undefined], [2, "active", false]);
  await open.terminate();
  assert.deepEqual([open.phase, other.phase], ["ended", "ended"]);
  assert.deepEqual([(await other.refresh()).status, open.session.status], ["terminated", "terminated"]);
});

test("a rotation that many wait for is one generation", async (t) => {
  const service = await sandbox(t);
  const open = await service.agent().openSession(WANTED, { credentials: true, autoRotate: true });
  await service.fault({ kind: "delay", ms: 500 }, "rotate_session");
  const seen = await Promise.all(Array.from({ length: 20 }, () => open.observe("block")));
  assert.deepEqual([new Set(seen.map(({ verdict }) => verdict)), open.generation], [new Set(["rotated"]), 1]);
  await open.rotate();
  await open.refresh();
  assert.deepEqual([open.generation, open.phase], [2, "ready"]);
});

async function port(t, server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return server.address().port;
}

test("the proxy's failures are told apart from the target's, whichever client has met them", async (t) => {
  const { ProxySettings } = await import("hopline");
  const service = await sandbox(t);
  const agent = service.agent();
  const open = await agent.openSession({ ...WANTED, protocol: "http" }, { credentials: true });
  /** The effect of each advice. */
  const PROXY = /^the proxy refused/;
  const TARGET = /^the target failed/;
  const seen = async (name, url, proxy, ms = 30_000) => {
    const met = await CLIENTS[name](url, proxy, ms).catch((error) => error);
    const { verdict, why, reason } = await open.observe(met);
    return why ?? reason ?? verdict;
  };
  const silent = await port(t, listen(() => {}));
  const refusing = await port(t, createServer((_, answer) => answer.writeHead(403).end()));
  const gone = listen();
  const closed = await port(t, gone);
  await new Promise((resolve) => gone.close(resolve));
  const login = { username: open.session.proxy.username, password: open.session.proxy.password };
  const to = (more) => new ProxySettings({ ...open.session.proxy, full_url: undefined, ...login, ...more });
  for (const name of Object.keys(CLIENTS)) {
    assert.equal(await seen(name, service.target_url, open.proxy), "keep", name);
    assert.match(await seen(name, service.target_url, to({ password: "wrong" })), PROXY, `${name}: a wrong login`);
    assert.match(await seen(name, service.target_url, to({ host: "127.0.0.1", port: closed })), PROXY, `${name}: nobody listens`);
    assert.match(await seen(name, `http://127.0.0.1:${closed}/`, open.proxy), TARGET, `${name}: no target`);
    assert.equal(await seen(name, `http://127.0.0.1:${refusing}/`, open.proxy), "http_403", name);
    // One timeout is nobody's fault yet, the second is the exit's.
    await seen(name, `http://127.0.0.1:${silent}/`, open.proxy, 1000);
    assert.equal(await seen(name, `http://127.0.0.1:${silent}/`, open.proxy, 1000), "timeout", name);
  }
});

test("errors that Playwright throws are known by their words", async (t) => {
  const service = await sandbox(t);
  const open = await service.agent().openSession(WANTED);
  const thrown = (message, name = "Error") => Object.assign(new Error(message), { name });
  const verdict = async (seen) => {
    const { verdict, why } = await open.observe(seen);
    return why?.split(" ").slice(0, 2).join(" ") ?? verdict;
  };
  for (const message of ["net::ERR_PROXY_CONNECTION_FAILED at https://a", "net::ERR_SOCKS_CONNECTION_FAILED", "net::ERR_TUNNEL_CONNECTION_FAILED", "NS_ERROR_PROXY_CONNECTION_REFUSED", "net::ERR_INVALID_AUTH_CREDENTIALS"]) {
    assert.equal(await verdict(thrown(`page.goto: ${message}`)), "the proxy", message);
  }
  for (const message of ["net::ERR_NAME_NOT_RESOLVED", "net::ERR_CERT_AUTHORITY_INVALID", "net::ERR_SOCKS_CONNECTION_HOST_UNREACHABLE"]) {
    assert.equal(await verdict(thrown(`page.goto: ${message}`)), "the target", message);
  }
  await verdict(thrown("page.goto: Timeout 30000ms exceeded.", "TimeoutError"));
  assert.equal(await verdict(thrown("net::ERR_TIMED_OUT")), "rotate");
  // A failure that may be anybody's is a reason to read the session once it comes three times in a row.
  const odd = Object.assign(new Error("half a pair: \ud800", { cause: new Error("net::ERR_CONNECTION_RESET") }), { name: "\udc00", code: 7n, errors: [null, 7] });
  odd.cause.cause = odd;
  for (const failed of [odd, thrown("page.goto: net::ERR_EMPTY_RESPONSE"), "unknown"]) {
    const { verdict, why } = await open.observe(failed);
    assert.deepEqual([verdict, /read the session/.test(why)], ["unsure", failed === "unknown"], String(why));
  }
  // A value that breaks when it is looked at says nothing by that; its other members count.
  const broken = (given, ...names) => names.reduce((one, name) => Object.defineProperty(one, name, { get: () => assert.fail("it was looked at") }), given);
  const refused = Object.assign(new Error(), { code: "ECONNREFUSED" });
  for (const failed of [broken(new Error("?"), "stack", "message", "name", "code", "response", "status", "cause", Symbol.toStringTag), broken(new Error("?"), "message"), Object.assign(new Error("?"), { message: { toString: () => assert.fail("it was read") } })]) {
    assert.equal(await verdict(failed), "the failure");
    await open.observe(200);
  }
  assert.equal(await verdict(broken(new Error("?", { cause: refused }), "message", "response", "headers")), "the proxy");
  assert.equal(await verdict(broken({ status: 200 }, "headers", "statusCode", "response")), "keep");
  const fails = () => {
    throw null;
  };
  for (const given of [new Proxy({}, { get: fails }), new Proxy(new Error(), { get: fails, getPrototypeOf: fails, ownKeys: fails })]) {
    await assert.rejects(open.observe(given), { name: "HoplineError", kind: "invalid", effect: "none" });
  }
  // An error of another realm is one.
  assert.equal(await verdict(runInNewContext("Object.assign(new Error(), { code: 'ECONNREFUSED' })")), "the proxy");
  // A value with a status is an observation, and so is a word; nothing else is.
  for (const seen of [200, { status: 200 }, { statusCode: 204 }, new Response(null, { status: 200 })]) assert.equal(await verdict(seen), "keep");
  for (const seen of ["proxy", 407, { status: 407 }]) assert.equal(await verdict(seen), "the proxy");
  for (const seen of ["nothing", {}, null, undefined, [], { status: "403" }, NaN, 1.5]) {
    await assert.rejects(open.observe(seen), { kind: "invalid", effect: "none" }, String(seen));
  }
});

test("a termination that was asked for before its client is closed is still sent, also again, and nothing else is", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t, "--session-limit", "100");
  for (const fault of [{ kind: "delay", ms: 300 }, { kind: "drop_before" }, { kind: "error", code: "RATE_LIMIT_EXCEEDED", status: 429 }]) {
    for (const store of [undefined, new OwnStore()]) {
      const agent = service.agent({ store });
      const open = await agent.openSession(WANTED, { intent: "job-17" });
      await service.fault(fault, "terminate_session");
      await service.fault({ kind: "delay", ms: 2000 }, "get_balance");
      const [reading, ending] = [agent.getBalance().catch((error) => error.kind), open.terminate().then((answer) => answer ?? "ended", (error) => error)];
      await Promise.all([agent.close(), agent.close()]);
      assert.ok(!((await ending) instanceof Error), `${fault.kind}: ${(await ending).message}`);
      assert.equal(await reading, "cancelled");
      const { sessions } = await service.state();
      assert.equal(sessions.find(({ session_id }) => session_id === open.session_id).status, "terminated", fault.kind);
    }
  }
  const agent = service.agent({ dailyCapUsd: 90 });
  const pool = await agent.openPool("shop", { ...WANTED, quantity: undefined, size: 3, keepReady: 3 });
  await pool.waitReady(3);
  await service.fault({ kind: "delay", ms: 200 }, "terminate_session", 3);
  const drained = pool.drain().then(() => "drained", (error) => error.message);
  await agent.close();
  assert.equal(await drained, "drained");
  assert.ok((await service.state()).sessions.every(({ status }) => status === "terminated"));
});

test("once a client is closed it sends nothing, whatever was on its way to be sent", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t, "--session-limit", "100");
  /** When the client was closed, and the sends after that. */
  let [closed, late] = [false, []];
  const own = (url, init) => (closed && late.push(init.method), fetch(url, init));
  const close = (agent) => ((closed = true), agent.close());
  // In the same turn, with a signal and without, as the first call and as a later one.
  for (const isFirst of [true, false]) {
    for (const given of [undefined, new AbortController()]) {
      const options = { signal: given?.signal };
      closed = false;
      const agent = service.agent({ fetch: own });
      if (!isFirst) await agent.getBalance();
      const calls = [agent.createSession(WANTED, options), agent.openSession(WANTED, options), agent.observe("s", "captcha")];
      const ended = Promise.allSettled(calls);
      await close(agent);
      const told = (await ended).slice(0, 2).map(({ reason }) => reason?.kind);
      assert.ok(told.every((kind) => kind === "misuse" || kind === "cancelled"), `${told}`);
      // The rotation has no listener any more.
      given?.abort();
    }
  }
  // A pool that is about to buy: its record is being put.
  closed = false;
  const store = new OwnStore();
  const put = store.put.bind(store);
  const putting = new Promise((resolve) => (store.put = async (...given) => (resolve(), await new Promise((wait) => setTimeout(wait, 300)), put(...given))));
  const agent = service.agent({ store, fetch: own, dailyCapUsd: 90 });
  const pool = await agent.openPool("shop", { session_type: "dynamic", product_no: "dynamic-world", size: 1, keepReady: 1 });
  await putting;
  await close(agent);
  await new Promise((wait) => setTimeout(wait, 500));
  assert.deepEqual(late, []);
  assert.equal((await service.state()).charges.length, 0);
  assert.ok(pool.name);
});
