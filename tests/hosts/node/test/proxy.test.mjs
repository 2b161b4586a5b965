// A session's proxy as other clients want it, through the sandbox's real proxies; and what is told of a session.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { test } from "node:test";
import { inspect } from "node:util";

import { ProxySettings, meta, sessionEvent } from "hopline";

import { WANTED, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

const PROXY = { host: "proxy.example", port: 1080, protocol: "socks5", username: "us:er@x", password: 'p/a"s\\s %' };

/** Runs curl with a configuration on its standard input, and gives what it wrote. */
function curl(config, url) {
  return new Promise((resolve, reject) => {
    const child = execFile("curl", ["--silent", "--show-error", "--fail", "--config", "-", url], (error, out, errors) => (error ? reject(new Error(errors)) : resolve(out)));
    child.stdin.end(config);
  });
}

test("a URL holds the login escaped, and names are for the proxy to look up", () => {
  const settings = new ProxySettings(PROXY);
  assert.equal(settings.url, "socks5h://us%3Aer%40x:p%2Fa%22s%5Cs%20%25@proxy.example:1080");
  const read = new URL(new ProxySettings({ ...PROXY, protocol: "http" }).url);
  assert.deepEqual([read.protocol, decodeURIComponent(read.username), decodeURIComponent(read.password)], ["http:", PROXY.username, PROXY.password]);
  for (const host of ["2001:db8::1", "[2001:db8::1]"]) assert.match(new ProxySettings({ ...PROXY, host }).url, /@\[2001:db8::1\]:1080$/);
  assert.match(new ProxySettings({ ...PROXY, protocol: "https" }).url, /^https:/);
  assert.match(new ProxySettings({ ...PROXY, protocol: "https", full_url: "http://a:b@proxy.example:1080" }).url, /^http:/);
});

test("a copy that has lost the texts of its secrets is refused, and the error says so", async (t) => {
  const service = await sandbox(t);
  const { session } = await service.agent().openSession(WANTED, { credentials: true });
  const lost = { kind: "invalid", field: "username", message: /the text of `username` was lost when it was copied/ };
  for (const copy of [structuredClone(session), JSON.parse(JSON.stringify(session))]) assert.throws(() => new ProxySettings(copy.proxy), lost);
  const { username } = session.proxy;
  assert.equal(new ProxySettings({ ...session.proxy, full_url: undefined }).playwright === undefined, false);
  assert.throws(() => new ProxySettings({ ...session.proxy, username: username.reveal(), password: { serial: 1 } }), { field: "password" });
});

test("curl goes through the proxy of a SOCKS5 and of an HTTP session", async (t) => {
  try {
    execFileSync("curl", ["--version"], { stdio: "ignore" });
  } catch (error) {
    // Where all is to be checked, what is missing is a failure.
    if (process.env.CI === "true") throw error;
    return t.skip("curl is not installed");
  }
  const service = await sandbox(t);
  const agent = service.agent();
  for (const protocol of ["socks5", "http", "https"]) {
    const open = await agent.openSession({ ...WANTED, protocol }, { credentials: true });
    const before = (await service.state()).traffic_bytes;
    assert.ok((await curl(new ProxySettings(open.session.proxy).curl, service.target_url)).length > 0);
    assert.ok((await service.state()).traffic_bytes > before, protocol);
    await assert.rejects(curl(new ProxySettings({ ...open.session.proxy, username: "a", password: "b" }).curl, service.target_url), /curl/);
  }
});

test("undici goes through the proxy of an HTTP session", async (t) => {
  const { ProxyAgent, fetch } = tool("undici");
  const service = await sandbox(t);
  const open = await service.agent().openSession({ ...WANTED, protocol: "http" }, { credentials: true });
  const dispatcher = new ProxyAgent(new ProxySettings(open.session.proxy).undici());
  t.after(() => dispatcher.close());
  const before = (await service.state()).traffic_bytes;
  assert.ok((await (await fetch(service.target_url, { dispatcher })).text()).length > 0);
  assert.ok((await service.state()).traffic_bytes > before);
});

test("a client that takes no password for SOCKS5 is refused, and the error names what to buy", () => {
  const settings = new ProxySettings(PROXY);
  for (const client of ["undici", "playwright"]) {
    assert.throws(() => settings[client](), { kind: "invalid", field: "protocol", message: /`protocol` http/ });
    const told = new ProxySettings({ ...PROXY, protocol: "http" })[client]();
    assert.equal(told.uri ?? told.server, "http://proxy.example:1080");
  }
  const { username, password } = new ProxySettings({ ...PROXY, protocol: "http" }).playwright();
  assert.deepEqual([username, password], [PROXY.username, PROXY.password]);
});

test("a proxy without its credentials is refused, and the error says how to ask for them", () => {
  const { username, password, ...without } = PROXY;
  for (const proxy of [without, { ...without, username }, { ...PROXY, password: "" }]) assert.throws(() => new ProxySettings(proxy), { kind: "invalid", message: /`credentials`/ });
  for (const proxy of [undefined, null, {}, 7, { ...PROXY, port: null }, { ...PROXY, port: "1080" }, { ...PROXY, host: 'a"\nurl = "file:///etc' }, { ...PROXY, host: "a@b" }, { ...PROXY, protocol: "ftp" }]) assert.throws(() => new ProxySettings(proxy), { kind: "invalid", operation: "proxy", effect: "none" });
});

test("settings print and copy no credential, and what is made for another client keeps its login when it is merged", () => {
  const canary = { ...PROXY, protocol: "http", username: "canary-user", password: "canary-password" };
  const settings = new ProxySettings(canary);
  for (const shown of [inspect(settings, { depth: 9, showHidden: true }), JSON.stringify(settings), String(settings), JSON.stringify({ ...settings }), JSON.stringify(structuredClone({ ...settings }))]) {
    assert.doesNotMatch(shown, /canary|Y2FuYXJ5/, shown);
  }
  assert.deepEqual({ ...settings.undici(), connectTimeout: 1 }, { uri: "http://proxy.example:1080", token: `Basic ${btoa("canary-user:canary-password")}`, connectTimeout: 1 });
  assert.deepEqual({ ...settings.playwright(), bypass: "a" }, { server: "http://proxy.example:1080", username: "canary-user", password: "canary-password", bypass: "a" });
});

test("an event is a plain object of what was seen, and of a target only the host name is told", async (t) => {
  assert.deepEqual(sessionEvent({ status: 403, seen: "block", latency_ms: 12.5, bytes: 0, target: "https://user:secret@Shop.Example:8443/a?token=1", attempt: 2, note: undefined }), {
    status: 403, seen: "block", latency_ms: 12.5, bytes: 0, target: "shop.example", attempt: 2,
  });
  assert.deepEqual(sessionEvent({ target: new URL("http://[::1]:80/x") }), { target: "[::1]" });
  assert.deepEqual(sessionEvent({ target: "shop.example" }), { target: "shop.example" });
  const wrong = { status: [0, 99, 600, "403", 200.5, NaN], seen: ["nothing", 1], latency_ms: [-1, "1", Infinity], bytes: [-1, 1.5, "1"], target: ["", "http://", 7, null, "a b"] };
  for (const [field, values] of Object.entries(wrong)) {
    for (const value of values) assert.throws(() => sessionEvent({ [field]: value }), { kind: "invalid", field, effect: "none" }, `${field} ${value}`);
  }
  for (const facts of [undefined, null, 7, [], {}]) assert.throws(() => sessionEvent(facts), { kind: "invalid" });

  const service = await sandbox(t);
  const agent = service.agent();
  const { session_id } = await agent.openSession(WANTED);
  for (let n = 0; n < 3; n += 1) await agent.reportSessionEvent({ session_id, event: sessionEvent({ status: 403, seen: "block" }) });
  const health = await agent.getSessionHealth({ session_id });
  assert.deepEqual([health.status, health.metrics.bad_events], ["degraded", 3], meta(health).raw);
  await agent.reportSessionEvent({ session_id, event: { mine: { n: [1] } } });
  await assert.rejects(agent.reportSessionEvent({ session_id, event: [1] }), { kind: "invalid", field: "event" });
});
