// `proxy.onLoopback()`: a port without a login, for whatever can't log in to a session's proxy.
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { ProxySettings } from "hopline";

import { peers, proxyOf } from "./lib/peers.mjs";
import { allOf, answer, connected, curl, isClosed, server, tunnel, until } from "./lib/ports.mjs";
import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";
import { lacks } from "./lib/tools.mjs";

const descriptors = () => (process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0);
const site = (t, ...options) => sandbox(t, "--session-limit", "1000", "--balance", "100000", "--tls", folder(), ...options);

/** A lease of a pool of one. */
async function lent(t, service, protocol, more) {
  const pool = await service.agent({ dailyCapUsd: 1000 }).openPool(`of-one-${protocol}`, { size: 1, session_type: "dynamic", product_no: "dynamic-world", protocol, ...more });
  return { pool, lease: await pool.acquire() };
}


/** The port of a proxy, closed with the test. */
async function opened(t, settings) {
  const port = await settings.onLoopback();
  t.after(() => port[Symbol.asyncDispose]());
  return port;
}

for (const protocol of ["http", "socks5"]) {
  test(`curl and sockets fetch through a ${protocol} session that they can't log in to`, { skip: lacks("curl"), timeout: 120_000 }, async (t) => {
    const service = await site(t);
    const { lease } = await lent(t, service, protocol);
    const port = await opened(t, lease.proxy);
    const [socks, small] = [port.url.replace("http:", "socks5h:"), join(folder(), "small")];
    writeFileSync(small, "a body of no known length");
    const secure = service.tls_target.replace("127.0.0.1", "shop.localhost");
    const ways = [port.url, socks, socks.replace("5h", "5")];
    const asked = ways.flatMap((way) => [service.target_url, service.tls_target, ...(way === ways[2] ? [] : [secure])].map((url) => ["--proxy", way, "--cacert", service.tls_ca, url]));
    asked.push(["--proxy", port.url, "--data", "x=1", service.target_url]);
    asked.push(["--proxy", port.url, "--header", "Transfer-Encoding: chunked", "--upload-file", small, service.target_url]);
    asked.push(["--proxy", port.url, "--proxytunnel", service.target_url], ["--proxy", port.url, "--http1.0", service.target_url]);
    const pages = await Promise.all(asked.map(async (words) => JSON.parse(await curl(...words))));
    assert.equal(new Set(pages.map(({ address }) => address)).size, 1);
    assert.match(pages[0].address, /^127\.64\./);
    assert.match(await answer(port.url, `GET ${service.target_url} HTTP/1.1\r\n\r\n`), /^HTTP\/1\.1 200 [^]*Connection: close\r\n/);
  });

  test(`the port of a lease of ${protocol} ends with it, and a half that is closed leaves the other open`, { timeout: 60_000 }, async (t) => {
    const service = await site(t);
    const { pool, lease } = await lent(t, service, protocol);
    const target = await server(t, async (socket) => socket.end(Buffer.from(await allOf(socket)).reverse()));
    const silent = await server(t, (socket) => socket.end("all of it"));
    const before = descriptors();
    const port = await lease.proxy.onLoopback();
    const client = await tunnel(port.url, target);
    client.end("said".repeat(50_000));
    assert.ok((await allOf(client)).equals(Buffer.from("dias".repeat(50_000))));
    // The other way round: the target has said all, and the client goes on.
    const later = await tunnel(port.url, silent);
    assert.equal((await allOf(later)).toString(), "all of it");
    later.end("and this");
    const open = await tunnel(port.url, target);
    lease.release();
    await allOf(open);
    await until(() => isClosed(port.url));
    await assert.rejects(lease.proxy.onLoopback(), { kind: "misuse", message: /the lease was given back/ });
    await port.close();
    for (const socket of [client, later, open]) socket.destroy();
    assert.equal((await pool.status()).leased, 0);
    await until(() => descriptors() <= before);
  });
}

test("the end of a client ends its ports, and what is opened and closed within a lease leaves nothing", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const agent = service.agent({ dailyCapUsd: 1000 });
  const pool = await agent.openPool("ends", { size: 1, session_type: "dynamic", product_no: "dynamic-world", protocol: "http" });
  const lease = await pool.acquire();
  const before = descriptors();
  for (let n = 0; n < 20; n += 1) await (await lease.proxy.onLoopback()).close();
  await until(() => descriptors() <= before);
  const { url } = await lease.proxy.onLoopback();
  const idle = await connected(url);
  await agent.close();
  await until(() => isClosed(url));
  await allOf(idle);
});

test("the port of a session follows it from exit to exit", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const open = await service.agent().openSession({ ...WANTED, protocol: "http" }, { credentials: true });
  const port = await opened(t, open.proxy);
  const fetched = async () => JSON.parse((await answer(port.url, `GET ${service.target_url} HTTP/1.1\r\n\r\n`)).split("\r\n\r\n")[1].replace(/^[^{]*|[^}]*$/g, "")).address;
  const first = await fetched();
  const old = await tunnel(port.url, new URL(service.target_url).host);
  await open.rotate();
  await allOf(old);
  assert.notEqual(await fetched(), first);
  await open.terminate();
  assert.match(await answer(port.url, `GET ${service.target_url} HTTP/1.1\r\n\r\n`), /^HTTP\/1\.1 503 [^]*\r\n\r\nhopline: the lease or session of this port is over, or not usable yet\n$/);
});

test("a client that never reads holds nothing up, and ends with the port", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { lease } = await lent(t, service, "http");
  let sent = 0;
  const target = await server(t, (socket) => {
    const more = () => {
      let isTaken = true;
      while (isTaken && !socket.destroyed) {
        isTaken = socket.write(Buffer.alloc(65_536), () => (sent += 65_536));
      }
    };
    socket.on("drain", more);
    more();
  });
  const before = descriptors();
  const port = await lease.proxy.onLoopback();
  const lazy = await tunnel(port.url, target);
  lazy.pause();
  for (let last = -1; last !== sent; ) {
    last = sent;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  // The buffers of the system hold so much, and those of the port no more than a few pieces.
  assert.ok(sent > 0 && sent < 64 << 20, `${sent} bytes`);
  assert.match(await answer(port.url, `GET ${service.target_url} HTTP/1.1\r\n\r\n`), /^HTTP\/1\.1 200 /);
  lease.release();
  await until(() => isClosed(port.url));
  lazy.destroy();
  await until(() => descriptors() <= before + 1);
});

test("a thousand connections at once", { timeout: 120_000 }, async (t) => {
  const service = await site(t);
  const { lease } = await lent(t, service, "http");
  const target = await server(t, (socket) => socket.pipe(socket));
  const before = descriptors();
  const port = await lease.proxy.onLoopback();
  const told = await Promise.all(Array.from({ length: 1000 }, async (_, number) => {
    const socket = await tunnel(port.url, target);
    socket.end(String(number));
    const echo = (await allOf(socket)).toString();
    socket.destroy();
    return Number(echo);
  }));
  assert.deepEqual(told, Array.from({ length: 1000 }, (_, number) => number));
  await port.close();
  await until(() => descriptors() <= before + 1);
});

/** By name: what a client sends, and how the answer begins. */
const REFUSED = {
  "not HTTP": ["hello\r\n\r\n", "HTTP/1.1 400 "],
  "a host that is none": ['CONNECT a"b:443 HTTP/1.1\r\n\r\n', "HTTP/1.1 400 "],
  "a host with a line break": ["\x05\x01\x00\x05\x01\x00\x03\x06a\r\nb:c\x00P", "\x05\x00\x05\x08"],
  "no port": ["CONNECT shop.localhost HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "],
  "half a bracket": ["GET http://[/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "],
  "https as a plain request": ["GET https://shop.localhost/ HTTP/1.1\r\n\r\n", "HTTP/1.1 501 "],
  "HTTP/2": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400 "],
  "two lengths": ["POST http://shop.localhost/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 400 "],
  "a length and chunks": ["POST http://shop.localhost/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 400 "],
  "two codings": ["POST http://shop.localhost/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", "HTTP/1.1 400 "],
  "a line break in the URL": ["GET http://shop.localhost/\nX-Inj:1 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "],
  "a field with a space": ["GET http://shop.localhost/ HTTP/1.1\r\nBad Name: x\r\n\r\n", "HTTP/1.1 400 "],
  "a head without an end": [`GET http://shop.localhost/ HTTP/1.1\r\nX: ${"a".repeat(70_000)}`, "HTTP/1.1 400 "],
  "its own address": ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 400 "],
  "SOCKS4": ["\x04\x01\x00P\x7f\x00\x00\x01\x00", "\x00\x5b"],
  "SOCKS5 with BIND": ["\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00P", "\x05\x00\x05\x07"],
  "SOCKS5 with an odd address": ["\x05\x01\x00\x05\x01\x00\x09", "\x05\x00\x05\x08"],
  "SOCKS5 with another login": ["\x05\x01\x01", "\x05\xff"],
  "a half that is closed at once": ["", ""],
};

test("what a port does not do is refused in the client's language, and none of it reaches the proxy", { timeout: 60_000 }, async (t) => {
  const ready = await peers(t, await sandbox(t));
  const port = await opened(t, new ProxySettings(proxyOf(ready, "http", "right")));
  for (const [name, [sent, wanted]] of Object.entries(REFUSED)) {
    const got = name.startsWith("a half") ? await halved(port.url) : await answer(port.url, Buffer.from(sent, "latin1"));
    assert.ok(got.startsWith(wanted), `${name}: ${JSON.stringify(got)}`);
  }
  const silent = await connected(port.url);
  silent.write("CONN");
  assert.deepEqual((await ready.recorded()).logins, []);
});

async function halved(url) {
  const socket = await connected(url);
  socket.end();
  return (await allOf(socket)).toString();
}

/** By kind and name of a proxy that fails: the status, words of the sentence, and the reply of SOCKS5. */
const FAILURES = [
  ["http", "refuses_login", 502, "refused CONNECT to 127.0.0.1:9 with 407", 1],
  ["http", "forbids", 502, "refused CONNECT to 127.0.0.1:9 with 403", 2],
  ["http", "bad_gateway", 502, "refused CONNECT to 127.0.0.1:9 with 502", 4],
  ["http", "closes", 502, "closed the connection without an answer", 1],
  ["http", "dead", 502, "could not be reached: ECONNREFUSED", 1],
  ["socks5", "refuses_login", 502, "refused the login", 1],
  ["socks5", "forbids", 502, "could not connect to 127.0.0.1:9: not allowed", 2],
  ["socks5", "bad_gateway", 502, "could not connect to 127.0.0.1:9: general failure", 1],
  ["socks5", "unreachable", 502, "could not connect to 127.0.0.1:9: host unreachable", 4],
  ["socks5", "closes", 502, "closed the connection without an answer", 1],
  ["socks5", "dead", 502, "could not be reached: ECONNREFUSED", 1],
];

test("a failure of the proxy is one sentence, without its login", { timeout: 60_000 }, async (t) => {
  const ready = await peers(t, await sandbox(t));
  for (const [kind, name, status, words, reply] of FAILURES) {
    const login = { username: "canary-user", password: "canary-word" };
    const port = await opened(t, new ProxySettings(proxyOf(ready, kind, name, login)));
    const got = await answer(port.url, "CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n");
    const [head, body] = got.split("\r\n\r\n");
    assert.ok(head.startsWith(`HTTP/1.1 ${status} `) && head.split("\r\n")[0].includes(words) && body.includes(words) && body.split("\n").length === 2, got);
    assert.doesNotMatch(got + inspect(port, { depth: 9, showHidden: true }) + JSON.stringify(port), /canary|Y2FuYXJ5/);
    const bySocks = Buffer.from(await answer(port.url, Buffer.from("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x09", "latin1")), "latin1");
    assert.deepEqual([...bySocks.subarray(2, 4)], [5, reply], `${kind} ${name}`);
  }
});

test("what the port sees of the proxy and of plain answers is observed to the lease", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  for (const protocol of ["http", "socks5"]) {
    const agent = service.agent({ dailyCapUsd: 1000 });
    const seen = [];
    agent.onEvent((event) => event.event === "lease_observed" && seen.push(event.seen));
    const pool = await agent.openPool(`seen-${protocol}`, { size: 1, session_type: "dynamic", product_no: "dynamic-world", protocol });
    const lease = await pool.acquire();
    const port = await opened(t, lease.proxy);
    const get = (url) => answer(port.url, `GET ${url} HTTP/1.1\r\n\r\n`);
    assert.match(await get(service.target_url), /^HTTP\/1\.1 200 /);
    await service.control("target", { throttle: { times: 1, retry_after: 5 } });
    assert.match(await get(service.target_url), /^HTTP\/1\.1 429 /);
    assert.match(await answer(port.url, "CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n"), /^HTTP\/1\.1 502 /);
    const nothing = await server(t, (socket) => socket.destroy());
    assert.match(await get(`http://${nothing}/`), /^HTTP\/1\.1 502 /);
    // A client that gives up says nothing of the session.
    const target = await server(t, () => {});
    const gone = await connected(port.url);
    gone.write(`GET http://${target}/ HTTP/1.1\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    gone.destroy();
    // Another client changes the login of the session: the old one is refused.
    await service.agent().rotateSession({ session_id: lease.sessionId });
    assert.match(await answer(port.url, `CONNECT ${new URL(service.target_url).host} HTTP/1.1\r\n\r\n`), /^HTTP\/1\.1 502 [^]*used-up traffic and changed logins/);
    // A proxy that speaks HTTP answers itself for the target that said nothing.
    assert.deepEqual(seen, [200, 429, "target", protocol === "http" ? 502 : "unknown", "proxy"], protocol);
    lease.release();
    await pool.drain();
  }
});

test("what belongs to one connection, and a body's end, is not passed on, and its length is", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { lease } = await lent(t, service, "socks5");
  const port = await opened(t, lease.proxy);
  const heads = [];
  const answers = { "/kept": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nKeep-Alive: x\r\n\r\nkept", "/open": "HTTP/1.0 200 OK\r\n\r\nopen", "/chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmore\r\n0\r\n\r\n", "/hints": "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n" };
  const target = await server(t, (socket) => socket.once("data", (head) => {
    heads.push(head.toString("latin1"));
    const path = Object.keys(answers).find((path) => head.includes(path));
    socket.write(answers[path]);
    if (path === "/open") socket.end();
  }));
  for (const [path, words] of [["/kept", "kept"], ["/open", "open"], ["/chunks", "more"], ["/hints", " 204 "]]) {
    const sent = `POST http://me:word@${target}${path}#part HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nConnection: x-own, content-length, host\r\nX-Own: 1\r\nX-Kept: \xe9\r\nContent-Length: 3\r\n\r\nabcGET /smuggled HTTP/1.1\r\n\r\n`;
    const got = await answer(port.url, Buffer.from(sent, "latin1"));
    assert.ok(/connection: close\r\n/i.test(got) && got.includes(words) && !/keep-alive/i.test(got), got);
  }
  for (const head of heads) {
    assert.match(head, /^POST \/\w+ HTTP\/1\.1\r\n/);
    assert.ok(head.includes(`Host: ${target}\r\n`) && /content-length: 3\r\n/i.test(head) && head.includes("X-Kept: \xe9\r\n"), head);
    assert.doesNotMatch(head, /other|x-own|proxy-|smuggled|word|#part/i);
  }
  const half = await server(t, (socket) => socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", () => socket.destroy())));
  assert.match(await answer(port.url, `GET http://${half}/ HTTP/1.1\r\n\r\n`), /Content-Length: 100\r\n[^]*half$/);
});

test("a head that comes byte by byte, and what is sent with it, is read", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { lease } = await lent(t, service, "http");
  const port = await opened(t, lease.proxy);
  const target = await server(t, (socket) => socket.pipe(socket));
  const ways = [`CONNECT ${target} HTTP/1.1\r\n\r\nearly`, `\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01${String.fromCharCode(Number(target.split(":")[1]) >> 8, Number(target.split(":")[1]) & 255)}early`];
  for (const sent of ways) {
    for (const step of [1, sent.length]) {
      const socket = await connected(port.url, { noDelay: true });
      for (let at = 0; at < sent.length; at += step) {
        socket.write(Buffer.from(sent.slice(at, at + step), "latin1"));
        if (step === 1) await new Promise((resolve) => setImmediate(resolve));
      }
      socket.end();
      assert.match((await allOf(socket)).toString("latin1"), /early$/);
      socket.destroy();
    }
  }
});

test("options that are none, and a number that is taken, are refused", { timeout: 60_000 }, async (t) => {
  const settings = new ProxySettings({ host: "127.0.0.1", port: 9, protocol: "http", username: "me", password: "p" });
  for (const options of [null, 8118, { port: "8118" }, { port: -1 }, { port: 65_536 }, { token: "x" }]) await assert.rejects(settings.onLoopback(options), { kind: "invalid" }, String(options));
  const port = await opened(t, settings);
  await assert.rejects(settings.onLoopback({ port: Number(new URL(port.url).port) }), { code: "EADDRINUSE" });
  assert.deepEqual(Object.keys(port), ["url"]);
  await port.close();
  await port.close();
});
