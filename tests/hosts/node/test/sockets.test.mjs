// Real sockets that misbehave: what each failure tells about the request, and that the driver undoes no policy.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { AgentClient } from "hopline";

import { WANTED } from "./lib/sandbox.mjs";

/** A server that does with each connection what it is told, and keeps what it was sent. */
async function server(t, react) {
  const seen = [];
  const listening = createServer((socket) => {
    let text = "";
    socket.on("error", () => {});
    react.connected?.(socket);
    socket.on("data", (data) => {
      text += data;
      const [head, body] = text.split("\r\n\r\n");
      if (body === undefined || body.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)) return;
      seen.push(text);
      text = "";
      react.asked?.(socket, seen.length);
    });
  });
  listening.listen(0, "127.0.0.1");
  await once(listening, "listening");
  t.after(() => listening.close());
  const { port } = listening.address();
  return { seen, url: `http://127.0.0.1:${port}/v1` };
}

function agent(t, baseUrl, more) {
  const made = new AgentClient({ apiKey: "canary-key", baseUrl, ...more });
  t.after(() => made.close());
  return made;
}

const buy = (client, options) => client.createSession(WANTED, { attempts: 1, ...options }).then(() => assert.fail("was to fail"), (error) => error);
const answer = (status, headers, body = "") => `HTTP/1.1 ${status}\r\n${headers.map((line) => `${line}\r\n`).join("")}content-length: ${body.length}\r\n\r\n${body}`;
const JSON_TYPE = "content-type: application/json";

test("a refused connect and an unknown name never sent anything", async (t) => {
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const { port } = closed.address();
  await new Promise((resolve) => closed.close(resolve));
  for (const [url, what] of [[`http://127.0.0.1:${port}/v1`, /ECONNREFUSED/], ["https://no-such-host.invalid/v1", /ENOTFOUND|EAI_AGAIN/]]) {
    const error = await buy(agent(t, url));
    assert.deepEqual([error.kind, error.effect], ["unavailable", "none"]);
    assert.match(error.cause.message, what);
  }
});

test("what never had a connection, or refused the certificate, sent nothing", async (t) => {
  const { before } = await import(pathToFileURL(join(process.env.HOPLINE_VECTORS, "../../bindings-wasm/js/src/failures.js")));
  const sent = (cause) => before(new TypeError("fetch failed", { cause }))?.sent;
  const of = (code, syscall) => Object.assign(new Error(code), { code, syscall });
  for (const cause of [of("UND_ERR_CONNECT_TIMEOUT"), of("EHOSTUNREACH", "connect"), of("ENETUNREACH", "connect"), of("DEPTH_ZERO_SELF_SIGNED_CERT"), of("ERR_TLS_CERT_ALTNAME_INVALID"), of("CERT_HAS_EXPIRED"), of("UNABLE_TO_VERIFY_LEAF_SIGNATURE")]) {
    assert.equal(sent(cause), "never", cause.code);
  }
  const both = (...errors) => Object.assign(new AggregateError(errors), { code: errors[0].code });
  assert.equal(sent(both(of("ECONNREFUSED", "connect"), of("ENETUNREACH", "connect"))), "never");
  // A connection that was there may say the same.
  for (const cause of [of("EHOSTUNREACH", "read"), of("ETIMEDOUT", "read"), of("ECONNRESET", "connect"), of("UND_ERR_SOCKET"), both(of("ECONNREFUSED", "connect"), of("ECONNRESET", "read")), undefined, null]) {
    assert.equal(sent(cause), undefined, String(cause));
  }
});

test("of a caller's own fetch it is never assumed that nothing was sent", async (t) => {
  const error = await buy(agent(t, "http://127.0.0.1:9/v1", { fetch: (...all) => fetch(...all) }));
  assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"]);
});

test("a reset before or after the request may have sent it", async (t) => {
  for (const when of ["connected", "asked"]) {
    const { url } = await server(t, { [when]: (socket) => socket.resetAndDestroy() });
    const error = await buy(agent(t, url));
    assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"], when);
  }
});

test("a timeout is kept, and even a fetch that does not heed its signal is not waited for", async (t) => {
  const { url } = await server(t, {});
  for (const fetch of [undefined, () => new Promise(() => {})]) {
    const began = performance.now();
    const error = await buy(agent(t, url, { fetch }), { timeoutMs: 200 });
    assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"]);
    assert.ok(performance.now() - began < 15_000);
  }
});

test("a redirect is not followed", async (t) => {
  const target = await server(t, {});
  for (const status of [301, 302, 303, 307, 308]) {
    const { url, seen } = await server(t, { asked: (socket) => socket.end(answer(`${status} Moved`, [`location: ${target.url}/sessions`])) });
    const error = await buy(agent(t, url));
    assert.deepEqual([error.kind, error.status, seen.length], ["in_doubt", status, 1]);
  }
  assert.equal(target.seen.length, 0);
});

test("nothing is sent twice but by the core", async (t) => {
  for (const asked of [(socket) => socket.destroy(), (socket) => socket.end(answer("503 Busy", ["retry-after: 0"])), (socket) => socket.end(answer("408 Slow", []))]) {
    const { url, seen } = await server(t, { asked });
    await buy(agent(t, url));
    await agent(t, url).getBalance({}, { attempts: 1 }).catch(() => {});
    await agent(t, url).terminateSession({ session_id: "s" }, { attempts: 1 }).catch(() => {});
    assert.deepEqual(seen.map((text) => text.split(" ", 1)[0]), ["POST", "GET", "DELETE"]);
  }
});

test("Node's own fetch asks once more after a 421, which says that it was not done, with the same bytes", async (t) => {
  const { url, seen } = await server(t, { asked: (socket) => socket.end(answer("421 Misdirected", [])) });
  await buy(agent(t, url));
  assert.equal(seen.length, 2);
  assert.equal(seen[0], seen[1]);
});

test("a connection that dies between two requests does not send the second one twice", async (t) => {
  const { url, seen } = await server(t, {
    asked: (socket, count) => (count === 1 ? socket.write(answer("200 OK", [JSON_TYPE], '{"success":true,"data":{}}')) : socket.destroy()),
  });
  const client = agent(t, url);
  await client.getBalance();
  const error = await buy(client);
  assert.deepEqual([error.kind, seen.length], ["in_doubt", 2]);
});

test("a body is read up to its limit, and one that breaks off keeps its status", async (t) => {
  const huge = await server(t, {
    asked: (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${JSON_TYPE}\r\ncontent-length: 100000000\r\n\r\n{"success":true,"data":"`);
      const more = () => {
        while (!socket.destroyed && socket.write("x".repeat(65536)));
        socket.once("drain", more);
      };
      more();
    },
  });
  const before = process.memoryUsage().rss;
  const first = await buy(agent(t, huge.url, { maxBody: 100_000 }));
  assert.deepEqual([first.kind, first.status], ["in_doubt", 200]);
  assert.ok(process.memoryUsage().rss - before < 50_000_000);
  const short = await server(t, { asked: (socket) => socket.end(`HTTP/1.1 202 OK\r\n${JSON_TYPE}\r\ncontent-length: 500\r\n\r\n{"success":true,"data":{"sess`) });
  const second = await buy(agent(t, short.url));
  assert.deepEqual([second.kind, second.status], ["in_doubt", 202]);
  const stuck = await server(t, { asked: (socket) => socket.write(`HTTP/1.1 202 OK\r\n${JSON_TYPE}\r\ncontent-length: 500\r\n\r\n{"succ`) });
  const third = await buy(agent(t, stuck.url), { timeoutMs: 3000 });
  assert.deepEqual([third.kind, third.status], ["in_doubt", 202]);
});

test("a fetch that throws or returns nonsense is one clear error, and nothing is lost", async (t) => {
  const nonsense = [
    () => { throw new Error("own fault with canary-key"); },
    async () => { throw Object.assign(new Error("fetch failed"), { config: { headers: { "x-api-key": "canary-key" } } }); },
    async () => undefined, async () => 7, async () => ({}), async () => ({ status: "200" }), async () => ({ status: 200 }),
    async () => ({ status: 200, headers: new Headers(), body: "text" }), async () => { throw undefined; }, async () => { throw Object.create(null); }, async () => { throw new Proxy({}, { get() { throw new Error("canary-key"); } }); },
    async () => new Response('{"success":true,"data":7}', { status: 202 }),
  ];
  for (const fetch of nonsense) {
    const client = agent(t, "http://127.0.0.1:9/v1", { fetch });
    const error = await buy(client, { intent: "a" });
    assert.deepEqual([error.name, error.effect], ["HoplineError", "unknown"], `${fetch}: ${error.stack}`);
    assert.equal((await client.saved())[0].holds, "in_doubt");
    assert.ok(!`${error.stack} ${error.cause?.stack} ${JSON.stringify(error)}`.includes("canary"));
  }
});
