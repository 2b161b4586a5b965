// Real sockets that misbehave: what each failure tells about the request, and that the driver undoes no policy.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { AgentClient } from "hopline";

import { WANTED, sandbox } from "./lib/sandbox.mjs";

function agent(t, baseUrl, more) {
  const made = new AgentClient({ apiKey: "canary-key", baseUrl, ...more });
  t.after(() => made.close());
  return made;
}

const buy = (client, options) => client.createSession(WANTED, { attempts: 1, ...options }).then(() => assert.fail("was to fail"), (error) => error);

test("a refused connect and an unknown name never sent anything", async (t) => {
  // Port 3 is nobody's: no system gives it to a program that asks for any port.
  for (const [url, what] of [["http://127.0.0.1:3/v1", /ECONNREFUSED/], ["https://no-such-host.invalid/v1", /ENOTFOUND|EAI_AGAIN/]]) {
    const error = await buy(agent(t, url));
    assert.deepEqual([error.kind, error.effect], ["unavailable", "none"]);
    assert.match(error.cause.message, what);
  }
});

test("what never had a connection, or refused the certificate, sent nothing", async (t) => {
  const { inNode } = await import(pathToFileURL(join(process.env.HOPLINE_VECTORS, "../../bindings-wasm/js/src/failures.js")));
  const sent = (cause) => inNode(new TypeError("fetch failed", { cause }))?.sent;
  const of = (code, syscall) => Object.assign(new Error(code), { code, syscall });
  for (const cause of [of("UND_ERR_CONNECT_TIMEOUT"), of("EHOSTUNREACH", "connect"), of("ENETUNREACH", "connect"), of("ECONNRESET", "connect"), of("EMFILE", "connect"), of("DEPTH_ZERO_SELF_SIGNED_CERT"), of("ERR_TLS_CERT_ALTNAME_INVALID"), of("CERT_HAS_EXPIRED"), of("UNABLE_TO_VERIFY_LEAF_SIGNATURE")]) {
    assert.equal(sent(cause), "never", cause.code);
  }
  const both = (...errors) => Object.assign(new AggregateError(errors), { code: errors[0].code });
  assert.equal(sent(both(of("ECONNREFUSED", "connect"), of("ENETUNREACH", "connect"))), "never");
  // A connection that was there may say the same.
  for (const cause of [of("EHOSTUNREACH", "read"), of("ETIMEDOUT", "read"), of("ECONNRESET", "read"), of("UND_ERR_SOCKET"), both(of("ECONNREFUSED", "connect"), of("ECONNRESET", "read")), undefined, null]) {
    assert.equal(sent(cause), undefined, String(cause));
  }
});

test("of a caller's own fetch it is never assumed that nothing was sent", async (t) => {
  const error = await buy(agent(t, "http://127.0.0.1:9/v1", { fetch: (...all) => fetch(...all) }));
  assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"]);
});

test("the body of an answer that comes when its time is over is cancelled, so that it keeps no connection", { timeout: 20_000 }, async (t) => {
  let cancel;
  const cancelled = new Promise((resolve) => (cancel = resolve));
  const late = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { status: 202, headers: new Headers(), body: { cancel } };
  };
  const error = await buy(agent(t, "https://api.example/v1", { fetch: late }), { timeoutMs: 20 });
  assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"]);
  await cancelled;
});

test("a reset before or after the request was read may have sent it", async (t) => {
  const service = await sandbox(t);
  await service.fault({ kind: "reset" }, "create_session");
  for (const more of [{ baseUrl: service.reset_url }, {}]) {
    const error = await buy(service.agent(more));
    assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"], more.baseUrl);
  }
  assert.equal((await service.requests()).length, 1);
});

test("a timeout is kept, and even a fetch that does not heed its signal is not waited for", async (t) => {
  const service = await sandbox(t);
  await service.fault({ kind: "delay", ms: 60_000 }, "create_session");
  for (const fetch of [undefined, () => new Promise(() => {})]) {
    const began = performance.now();
    const error = await buy(service.agent({ fetch }), { timeoutMs: 200 });
    assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"]);
    assert.ok(performance.now() - began < 55_000);
  }
});

test("a redirect is not followed", async (t) => {
  const service = await sandbox(t);
  for (const [place, status] of [301, 302, 303, 307, 308].entries()) {
    await service.fault({ kind: "answer", status, headers: { location: "/v1/account/info" } }, "create_session");
    const error = await buy(service.agent());
    const seen = await service.requests();
    assert.deepEqual([error.kind, error.status, seen.length], ["in_doubt", status, place + 1]);
    assert.equal(seen[place].path, "/v1/sessions");
  }
});

test("nothing is sent twice but by the core", async (t) => {
  for (const fault of [{ kind: "drop_before" }, { kind: "answer", status: 503, headers: { "retry-after": "0" } }, { kind: "answer", status: 408 }]) {
    const service = await sandbox(t);
    await service.fault(fault, undefined, 100);
    await buy(service.agent());
    await service.agent().getBalance({}, { attempts: 1 }).catch(() => {});
    await service.agent().terminateSession({ session_id: "s" }, { attempts: 1 }).catch(() => {});
    assert.deepEqual((await service.requests()).map(({ method }) => method), ["POST", "GET", "DELETE"]);
  }
});

test("Node's own fetch asks once more after a 421, which says that it was not done, with the same bytes", async (t) => {
  const service = await sandbox(t);
  await service.fault({ kind: "answer", status: 421 }, undefined, 100);
  await buy(service.agent());
  const [first, second, ...more] = (await service.requests()).map(({ connection, ...bytes }) => bytes);
  assert.deepEqual([first, more], [second, []]);
  assert.equal(first.method, "POST");
});

test("a write goes over a connection of its own, and one that dies under it does not send it twice", async (t) => {
  const service = await sandbox(t);
  const client = service.agent();
  await client.getBalance();
  // While this is on its way the connection of the read becomes free again.
  await service.fault({ kind: "drop_before" }, "create_session");
  const error = await buy(client);
  const [first, second, ...more] = await service.requests();
  assert.deepEqual([error.kind, more], ["in_doubt", []]);
  assert.notEqual(first.connection, second.connection);
});

test("a body is read up to its limit, and one that breaks off or stops keeps its status", async (t) => {
  const service = await sandbox(t);
  for (const silent of [false, true]) {
    await service.fault({ kind: "huge", silent }, "create_session");
    const before = process.memoryUsage().rss;
    const error = await buy(service.agent({ maxBody: 100_000 }));
    assert.deepEqual([error.kind, error.status], ["in_doubt", 200]);
    assert.ok(process.memoryUsage().rss - before < 50_000_000);
  }
  for (const [kind, options] of [["truncate", {}], ["stall", { timeoutMs: 3000 }]]) {
    await service.fault({ kind }, "create_session");
    const error = await buy(service.agent(), options);
    assert.deepEqual([error.kind, error.status], ["in_doubt", 202], kind);
  }
});

test("a fetch that throws or returns nonsense is one clear error, and nothing is lost", async (t) => {
  const nonsense = [
    () => { throw new Error("own fault with canary-key"); },
    async () => { throw Object.assign(new Error("fetch failed"), { config: { headers: { "x-api-key": "canary-key" } } }); },
    async () => undefined, async () => 7, async () => ({}), async () => ({ status: "200" }), async () => ({ status: 200 }),
    async () => ({ status: 200, headers: new Headers(), body: "text" }), async () => { throw undefined; }, async () => { throw Object.create(null); }, async () => { throw new Proxy({}, { get() { throw new Error("canary-key"); } }); },
  ];
  for (const fetch of nonsense) {
    const client = agent(t, "http://127.0.0.1:9/v1", { fetch });
    const error = await buy(client, { intent: "a" });
    assert.deepEqual([error.name, error.effect], ["HoplineError", "unknown"], `${fetch}: ${error.stack}`);
    assert.equal((await client.saved())[0].holds, "in_doubt");
    assert.ok(!`${error.stack} ${error.cause?.stack} ${JSON.stringify(error)}`.includes("canary"));
  }
  // A success stays one, though nobody can read what was bought.
  const unread = await buy(agent(t, "http://127.0.0.1:9/v1", { fetch: async () => new Response('{"success":true,"data":7}', { status: 202 }) }), { intent: "a" });
  assert.deepEqual([unread.kind, unread.effect], ["decode", "done"], unread.stack);
});

test("a fetch is called as a function of its own, as a browser's must be", async (t) => {
  let self = "nobody called it";
  const client = agent(t, "http://127.0.0.1:9/v1", {
    async fetch() {
      self = this;
      return Response.json({ success: true, data: { balance: 1 } });
    },
  });
  assert.equal((await client.getBalance()).balance, 1);
  assert.equal(self, undefined);
});

test("what comes after the deadline is not read, and a header of several lines is none", async (t) => {
  let isRead = false;
  const late = async () => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return { status: 200, headers: new Headers(), body: { getReader: () => (isRead = true) } };
  };
  const error = await buy(agent(t, "http://127.0.0.1:9/v1", { fetch: late }), { timeoutMs: 50 });
  assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"]);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(!isRead);
  const headers = { get: (name) => ({ "content-type": "application/json", date: "today\nretry-after\n86400" })[name] ?? null };
  const failure = new TextEncoder().encode('{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"slow"}}');
  const odd = async () => ({ status: 429, headers, arrayBuffer: async () => failure.buffer });
  const refused = await agent(t, "http://127.0.0.1:9/v1", { fetch: odd }).getBalance({}, { attempts: 1 }).catch((error) => error);
  assert.equal(refused.code, "RATE_LIMIT_EXCEEDED");
  assert.ok(!(refused.retry_at > Date.now() + 3600_000), String(refused.retry_at));
});

test("a body whose reader gives up in its own way is cut short like any other", async (t) => {
  const read = async () => ({ done: false, value: new Uint8Array(9 << 20) });
  const long = async () => ({ status: 200, headers: new Headers(), body: { getReader: () => ({ read, cancel() {} }) } });
  const error = await agent(t, "http://127.0.0.1:9/v1", { fetch: long }).getBalance({}, { attempts: 1 }).catch((error) => error);
  assert.equal(error.status, 200, error.message);
});
