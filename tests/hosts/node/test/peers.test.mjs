// Each HTTP client that the README names, against the odd server and the proxies that all hosts share; see `tests/peers`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { AgentClient, ProxySettings, ResellerClient } from "hopline";

import { CLIENTS, HAS_UNDICI8 } from "./lib/http-clients.mjs";
import { ADVICE, peers, proxyOf } from "./lib/peers.mjs";
import { WANTED, login, program, sandbox } from "./lib/sandbox.mjs";
import { RUNTIMES, tool } from "./lib/tools.mjs";

const ROOM = ["--session-limit", "1000", "--rate-limit", "10000000", "--balance", "100000"];
/** Node 24, on Linux only. */
const NODE24 = join(dirname(tool.resolve("undici6/package.json")), "../node24/bin/node");
/** By HTTP client: what a client is given as `fetch`. */
const FETCHES = { "Node's own fetch": undefined, "the fetch of undici 6": tool("undici6").fetch, "the fetch of undici 7": tool("undici").fetch, ...(HAS_UNDICI8 && { "the fetch of undici 8": tool("undici8").fetch }) };
/** Answers that undici, and so Node, takes for none: a 100 that nobody asked for, and a connection that ends when it is used again. The request is sent again. */
const BEYOND_UNDICI = new Set(["continue", "informational", "stale", "stale-close", "unasked-408", "close"]);
/** A shorter pause serves as well. */
const SHORT = { late: "-50", "early-hints": "-50" };

// Most of it is waiting.
describe("an HTTP client", { concurrency: true }, () => {
  for (const [name, fetch] of Object.entries(FETCHES)) {
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
        const all = client(at);
        sold.add((await all.openSession(WANTED)).session_id);
        assert.ok("balance" in (await all.getBalance()), behaviour);
        sold.add((await all.openSession(WANTED)).session_id);
      };
      const rest = [...behaviours];
      const failures = [];
      const work = async () => {
        for (let next; (next = rest.shift()); ) await one(next).catch((error) => failures.push(`${next.name}: ${error.stack}`));
      };
      await Promise.all(Array.from({ length: 12 }, work));
      assert.deepEqual(failures, []);
      assert.equal((await service.state()).charges.length, sold.size, "each session is charged once");
      const keys = (await recorded()).relayed.filter(({ method, path }) => method === "POST" && path === "/v1/sessions").map(({ key }) => key);
      assert.equal(new Set(keys).size, sold.size, "one key for each purchase");
    });
  }
});

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

for (const [name, command] of Object.entries(RUNTIMES)) {
  test(`${name} before an odd server: purchases are made once, writes without a key are not in doubt, and nothing was sent where nobody is`, { skip: !existsSync([command].flat()[0]) && "it is not for this system", timeout: 120_000 }, async (t) => {
    const service = await sandbox(t, ...ROOM);
    const { odd_url, behaviours, recorded } = await peers(t, service);
    const { api_key, username, password } = service;
    const names = behaviours.map(({ name }) => `${name}${SHORT[name] ?? ""}`);
    const given = JSON.stringify({ odd_url, behaviours: names, api_key, username, password });
    const { out, errors } = await program("elsewhere.mjs", {}, [given], undefined, command, 100_000).ended;
    const { sold, made, missed } = JSON.parse(out || assert.fail(errors));
    const ids = sold.flatMap(([, ids]) => ids);
    assert.deepEqual([sold.filter(([, ids]) => ids.some((id) => !id.startsWith("ses_"))), new Set(ids).size], [[], 2 * names.length]);
    assert.equal((await service.state()).charges.length, ids.length);
    assert.deepEqual([made, missed], [Array(4).fill("made"), Array(2).fill(["unavailable", "none"])]);
    const writes = (await recorded()).relayed.filter(({ method, path }) => method === "POST" && path.includes("/user/"));
    assert.equal(writes.length, 12, "each was sent once");
  });
}

test("a write is sent, too, if the program's own dispatcher can't be made again", async (t) => {
  const { Agent: Real, getGlobalDispatcher, setGlobalDispatcher } = tool("undici6");
  const before = getGlobalDispatcher();
  t.after(() => setGlobalDispatcher(before));
  let made = 0;
  class Agent extends Real {
    constructor(options) {
      if (made++) throw new Error("one is enough");
      super(options);
    }
  }
  setGlobalDispatcher(new Agent());
  const service = await sandbox(t);
  await service.agent().createSession(WANTED, { timeoutMs: 5000 });
  assert.deepEqual([made, (await service.state()).charges.length], [2, 1]);
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

/** Logins as they are in the wild. */
const LOGINS = [["søren", "SØREN"], ["ĘdwardĄcki1", "pässword"], [`${"u".repeat(120)}-country-us`, "p".repeat(127)], [`${"ü".repeat(60)}-1`, "x".repeat(255)], ["user", "%2F:@/ ?#"]];

const curl = (url) => (proxy) => new Promise((resolve, reject) => {
  const child = spawn("curl", ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "30", "--config", "-", url], { stdio: ["pipe", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (text) => (out += text));
  child.once("error", reject);
  child.once("close", () => resolve(Number(out)));
  child.stdin.end(proxy.curl);
});

test("a proxy is given the login as it is, by each client", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t);
  const { recorded, forget, ...ready } = await peers(t, service);
  const url = "http://shop.example/";
  const ways = Object.entries(CLIENTS).map(([name, get]) => [name, "http", async (proxy) => (await get(url, proxy, 30_000)).status]);
  ways.push(...["http", "socks5"].map((kind) => [`curl over ${kind}`, kind, curl(url)]));
  for (const [name, kind, get] of ways) {
    for (const [username, password] of LOGINS) {
      await forget();
      const status = await get(new ProxySettings(proxyOf(ready, kind, "right", { username, password })));
      // The error of got has another name for it.
      assert.ok(status === 200 || name === "got", `${name} as ${username}: ${status}`);
      const logins = (await recorded()).logins.filter(({ username }) => username !== null);
      const told = logins.map(({ username, password }) => [username, password].map((bytes) => Buffer.from(bytes, "hex").toString()));
      assert.deepEqual(told.at(-1), [username, password], name);
    }
  }
});

/** These hand on what a proxy answers as if the target had; then nothing tells the two apart but the status. */
const AS_THE_TARGETS = new Set(["undici 8", "axios", "got"]);
const ANSWERED = { forbids: /^http_403$/, bad_request: /^keep$/ };
/** Of these a signal of the caller's ends what waits for a proxy that is silent, and does not say that it was about time. */
const GIVEN_UP = new Set(["axios", "got"]);

test("what each client meets at a proxy that fails is the proxy's", { timeout: 240_000 }, async (t) => {
  const service = await sandbox(t);
  const ready = await peers(t, service);
  const open = await service.agent().openSession(WANTED);
  const advice = async (met) => {
    const { verdict, why, reason } = await open.observe(met);
    return why ?? reason ?? verdict;
  };
  assert.deepEqual(Object.keys(ready.http).sort(), Object.keys(ADVICE).sort());
  for (const [name, get] of Object.entries(CLIENTS)) {
    for (const [proxy, expected] of Object.entries(ADVICE)) {
      const settings = new ProxySettings(proxyOf(ready, "http", proxy));
      const meet = () => get("http://shop.example/", settings, ["hangs", "closes"].includes(proxy) ? 1500 : 30_000).catch((error) => error);
      // One timeout is nobody's fault yet, the second is the exit's.
      await open.observe(200);
      const isGivenUp = proxy === "hangs" && GIVEN_UP.has(name);
      if (proxy === "hangs") assert.match(await advice(await meet()), isGivenUp ? /^(one timeout|the failure may be)/ : /^one timeout/, `${name}: ${proxy}`);
      const also = isGivenUp ? /^(timeout|the failure may be)/ : AS_THE_TARGETS.has(name) && ANSWERED[proxy];
      assert.match(await advice(await meet()), also || expected, `${name}: ${proxy}`);
    }
  }
});

test("a name whose first address never answers is reached by its second, and one without another was sent nothing", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, ...ROOM);
  const { odd_url, black_holes } = await peers(t, service);
  if (black_holes.length === 0) return t.skip("this system lets no connection hang");
  const { Agent, getGlobalDispatcher, setGlobalDispatcher } = tool("undici");
  const before = getGlobalDispatcher();
  t.after(() => setGlobalDispatcher(before));
  const { port } = new URL(odd_url);
  let charges = 0;
  for (const hole of black_holes) {
    const { hostname } = new URL(`http://${hole}`);
    const address = hostname.replace(/[[\]]/g, "");
    const first = { address, family: address.includes(":") ? 6 : 4 };
    let addresses;
    const lookup = (_, { all }, found) => (all ? found(null, addresses) : found(null, addresses[0].address, addresses[0].family));
    for (const [name, fetch] of Object.entries(FETCHES).filter(([name]) => !name.endsWith("8"))) {
      const client = () => {
        const agent = service.agent({ baseUrl: `http://two.test:${port}/plain.${charges}/v1`, allowHttp: true, fetch });
        t.after(() => agent.close());
        return agent;
      };
      addresses = [first, { address: "127.0.0.1", family: 4 }];
      setGlobalDispatcher(new Agent({ connect: { lookup, timeout: 20_000 } }));
      const agent = client();
      await agent.getBalance({}, { attempts: 1 });
      await agent.createSession(WANTED, { attempts: 1 });
      charges += 1;
      // Of a fetch that is not Node's own it is not known what it did before it failed.
      if (fetch) continue;
      addresses = [first];
      setGlobalDispatcher(new Agent({ connect: { lookup, timeout: 1000 } }));
      const error = await client().createSession(WANTED, { attempts: 1 }).catch((error) => error);
      assert.deepEqual([error.kind, error.effect], ["unavailable", "none"], `${name}, ${hole}: ${error.stack}`);
    }
  }
  assert.equal((await service.state()).charges.length, charges);
});

for (const [name, node] of [["this Node", process.execPath], ["Node 24", NODE24]]) {
  const isNew = node === NODE24 || HAS_UNDICI8;
  const undicis = ["undici6", "undici", ...(isNew ? ["undici8"] : [])];
  const ways = [["own"], ...undicis.flatMap((undici) => [["own", undici], [undici], [`${undici}+pipelining`]]), ...(isNew ? [["undici6", "undici8"]] : [])];
  test(`each write has a connection of its own, on ${name}, over its fetch and over that of any undici`, { skip: !existsSync(node) && "it is not here", timeout: 120_000 }, async (t) => {
    const service = await sandbox(t, ...ROOM);
    const { odd_url, recorded, forget } = await peers(t, service);
    for (const [way, VOUCHES] of [[["own"], ""], ...ways.map((way) => [way, "1"])]) {
      await forget();
      const { code, out, errors } = await program("written.mjs", { HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: `${odd_url}/plain/v1`, VOUCHES }, way, undefined, node).ended;
      assert.deepEqual([code, new Set(JSON.parse(out || "[]")).size], [0, 13], `${way}: ${errors}`);
      const { relayed } = await recorded();
      const [reads, writes] = ["GET", "POST"].map((wanted) => relayed.filter(({ method }) => method === wanted).map(({ connection }) => connection));
      assert.equal(writes.length, 13);
      assert.ok(writes.every((one) => relayed.filter(({ connection }) => connection === one).length === 1), `${way}: reads on ${reads}, writes on ${writes}`);
      assert.ok(way[0].includes("+") || new Set(reads).size < reads.length, `${way}: reads share theirs`);
    }
  });
}

test("what newer Nodes and undici 8 do before an odd server, they do right", { skip: HAS_UNDICI8 ? "it is this one" : !existsSync(NODE24) && "there is none here", timeout: 300_000 }, async () => {
  const { NODE_TEST_CONTEXT, ...environment } = process.env;
  const child = spawn(NODE24, ["--test", "--test-reporter=tap", "--test-name-pattern", "(own fetch|undici 8) before an odd server|a proxy is given|meets at a proxy|first address", fileURLToPath(import.meta.url)], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (text) => (out += text));
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  assert.equal(code, 0, out);
  assert.match(out, /^ *ok \d+ - the fetch of undici 8 before an odd server/m);
});
