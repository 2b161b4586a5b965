// Each HTTP client that the README names, against the odd server and the proxies that all hosts share; see `tests/peers`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { AgentClient, ProxySettings, ResellerClient } from "hopline";

import { WANTED, login, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

const ROOM = ["--session-limit", "1000", "--rate-limit", "10000000", "--balance", "100000"];
/** By HTTP client: what a client is given as `fetch`. */
const CLIENTS = { "Node's own fetch": undefined, "the fetch of undici 6": tool("undici6").fetch, "the fetch of undici 7": tool("undici").fetch };
/** What undici, and so Node, takes for no answer: a 100 that nobody asked for, and a connection that ends when it is used again. It is sent again. */
const BEYOND_UNDICI = new Set(["continue", "informational", "stale", "stale-close", "unasked-408", "close"]);
/** A shorter pause serves as well. */
const SHORT = { late: "-50", "early-hints": "-50" };

/** The odd server before a sandbox, and the proxies: ends with the test. */
async function peers(t, service) {
  const child = spawn(process.env.HOPLINE_PEERS, ["--service", new URL(service.agent_url).origin], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const ready = JSON.parse(await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("error", reject);
  }));
  const recorded = async () => (await fetch(ready.control_url)).json();
  return { ...ready, recorded, forget: () => fetch(ready.control_url, { method: "DELETE" }) };
}

for (const [name, fetch] of Object.entries(CLIENTS)) {
  test(`${name} before an odd server: a purchase is made once, and each request gets its own answer`, { timeout: 300_000 }, async (t) => {
    const service = await sandbox(t, ...ROOM);
    const { odd_url, behaviours, recorded } = await peers(t, service);
    assert.ok(behaviours.length > 30);
    const sold = new Set();
    const client = (folder, more) => {
      const agent = new AgentClient({ apiKey: service.api_key, baseUrl: `${odd_url}/${folder}/v1`, fetch, ...more });
      t.after(() => agent.close());
      return agent;
    };
    const one = async ({ name: behaviour, answer }) => {
      const at = `${behaviour}${SHORT[behaviour] ?? ""}`;
      const agent = client(`${at}.once.writes`);
      const bought = [];
      for (const intent of ["first", "second"]) bought.push((await agent.openSession(WANTED, { intent })).session_id);
      assert.deepEqual((await agent.saved()).map(({ holds, intent }) => [holds, intent]).filter(([holds]) => /doubt/.test(holds)), [], behaviour);
      for (const session_id of bought) {
        assert.ok(!sold.has(session_id), `${behaviour}: ${session_id} was sold twice`);
        sold.add(session_id);
        assert.equal((await agent.getSession({ session_id })).session_id, session_id, behaviour);
      }
      if (answer !== "given" || BEYOND_UNDICI.has(behaviour)) return;
      // Always on.
      const reads = client(`${at}.reads`);
      for (const session_id of [...bought, ...bought]) assert.equal((await reads.getSession({ session_id })).session_id, session_id, behaviour);
      const writes = client(`${at}.writes`);
      sold.add((await writes.openSession(WANTED)).session_id);
    };
    const rest = [...behaviours];
    const failures = [];
    const work = async () => {
      for (let next; (next = rest.shift()); ) await one(next).catch((error) => failures.push(`${next.name}: ${error.stack}`));
    };
    await Promise.all([1, 2, 3, 4].map(work));
    assert.deepEqual(failures, []);
    assert.equal((await service.state()).charges.length, sold.size, "each session is charged once");
    const keys = (await recorded()).relayed.filter(({ method, path }) => method === "POST" && path === "/v1/sessions").map(({ key }) => key);
    assert.equal(new Set(keys).size, sold.size, "one key for each purchase");
  });
}

test("an answer that belongs to nobody is no purchase's, however late it comes on a connection that was used", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t, ...ROOM);
  const { odd_url } = await peers(t, service);
  const agent = new AgentClient({ apiKey: service.api_key, baseUrl: `${odd_url}/second-answer-400.writes/v1` });
  t.after(() => agent.close());
  const sold = [];
  for (const pause of [150, 350, 450, 0]) {
    sold.push((await agent.createSession(WANTED)).session_id);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  const { sessions, charges } = await service.state();
  assert.deepEqual([sold.toSorted?.() ?? [...sold].sort(), charges.length], [sessions.map(({ session_id }) => session_id).sort(), 4]);
});

test("a write without a key is not sent on a connection that may be closing", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t, ...ROOM);
  const { odd_url } = await peers(t, service);
  for (const behaviour of ["stale", "stale-close", "unasked-408", "close"]) {
    const reseller = new ResellerClient({ ...login(service), baseUrl: `${odd_url}/${behaviour}/api` });
    t.after(() => reseller.close());
    for (const n of [1, 2, 3]) {
      // A connection that was used is there when the write begins.
      await reseller.walkSubUsers({ pageSize: 10 })[Symbol.asyncIterator]().next();
      const { id } = await reseller.createUser({ username: `ann-${behaviour}-${n}`, password: "canary-ann", email: `ann-${behaviour}-${n}@example.com` }).catch((error) => assert.fail(`${behaviour} ${n}: ${error.message}`));
      assert.ok(id !== undefined);
    }
    assert.deepEqual((await reseller.saved()).filter(({ holds }) => /doubt/.test(holds)), [], behaviour);
  }
});

test("a dispatcher of the program's own sends writes without a key, too, as the rest", async (t) => {
  const { Agent, MockAgent, getGlobalDispatcher, setGlobalDispatcher } = tool("undici6");
  const before = getGlobalDispatcher();
  t.after(() => setGlobalDispatcher(before));
  const reseller = () => {
    const client = new ResellerClient({ token: "canary-token", baseUrl: "http://127.0.0.1:18999/api" });
    t.after(() => client.close());
    return client;
  };
  const wanted = { username: "ann", password: "canary-ann", email: "ann@example.com" };
  const answer = { code: 0, message: "ok", data: { id: 7 } };
  const mock = new MockAgent();
  mock.disableNetConnect();
  mock.get("http://127.0.0.1:18999").intercept({ path: /./, method: "POST" }).reply(200, answer, { headers: { "content-type": "application/json" } });
  setGlobalDispatcher(mock);
  assert.equal((await reseller().createUser(wanted)).id, 7, "a test's mock");
  const seen = [];
  setGlobalDispatcher(new Agent().compose((dispatch) => (options, handler) => (seen.push(options.method), dispatch(options, handler))));
  await reseller().createUser(wanted).catch(() => {});
  assert.ok(seen.includes("POST"), "an interceptor");
});

/** What logins hold in the wild. */
const LOGINS = [["søren", "SØREN"], ["ĘdwardĄcki1", "pässword"], [`${"u".repeat(120)}-country-us`, "p".repeat(127)], ["user", "%2F:@/ ?#"]];

test("a proxy is given the login as it is, by undici and curl", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t);
  const { http, socks5, recorded, forget } = await peers(t, service);
  const url = "http://shop.example/";
  const settings = (kind, [username, password]) => {
    const [host, port] = { http, socks5 }[kind].right.split(":");
    return new ProxySettings({ host, port: Number(port), protocol: kind, username, password });
  };
  const curl = (proxy) => new Promise((resolve, reject) => {
    const child = spawn("curl", ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "10", "--config", "-", url], { stdio: ["pipe", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (text) => (out += text));
    child.once("error", reject);
    child.once("close", () => resolve(Number(out)));
    child.stdin.end(proxy.curl);
  });
  const undici = async (name, proxy) => {
    const { ProxyAgent, fetch } = tool(name);
    const dispatcher = new ProxyAgent(proxy.undici());
    const { status } = await fetch(url, { dispatcher, signal: AbortSignal.timeout(10_000) });
    await dispatcher.close();
    return status;
  };
  const ways = { "undici 6": ["http", (proxy) => undici("undici6", proxy)], "undici 7": ["http", (proxy) => undici("undici", proxy)], "curl over HTTP": ["http", curl], "curl over SOCKS5": ["socks5", curl] };
  for (const [name, [kind, get]] of Object.entries(ways)) {
    for (const given of LOGINS) {
      await forget();
      assert.equal(await get(settings(kind, given)), 200, `${name} as ${given}`);
      const logins = (await recorded()).logins.filter(({ username }) => username !== null);
      const told = logins.map(({ username, password }) => [username, password].map((bytes) => Buffer.from(bytes, "hex").toString()));
      assert.deepEqual(told.at(-1), given, name);
    }
  }
});
