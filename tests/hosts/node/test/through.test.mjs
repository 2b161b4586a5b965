// `pool.dispatcher()`: requests of `fetch` and of `undici` through a pool.
import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder, program, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

const packageOf = (name) => dirname(tool.resolve(`${name}/package.json`));
const HERE = dirname(createRequire(import.meta.url).resolve("hopline/package.json"));
/** Node 24 is there on Linux only. */
const NODE24 = join(dirname(packageOf("undici8")), "node24/bin/node");
const NODES = { node: process.execPath, node24: NODE24 };
const SHOP = { session_type: "dynamic", product_no: "dynamic-world", protocol: "http" };
const undici = tool("undici");

const site = (t) => sandbox(t, "--session-limit", "1000", "--balance", "100000", "--tls", folder());
const visits = async (service) => (await service.control("visits")).visits;
/** An address of the target over https, by a name of its own. */
const at = (service, name, path = "/") => new URL(path, service.tls_target.replace("127.0.0.1", `${name}.localhost`)).href;

async function open(t, service, size, more) {
  const agent = service.agent({ dailyCapUsd: 1000 });
  const pool = await agent.openPool("shop", { size, ...SHOP, ...more });
  const dispatcher = (options) => pool.dispatcher({ requestTls: { ca: readFileSync(service.tls_ca) }, ...options });
  return { pool, dispatcher };
}

async function none(pool) {
  const end = Date.now() + 60_000;
  while ((await pool.status()).leased) {
    assert.ok(Date.now() < end, "the lease never came back");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A project with the package and one `undici`. */
function project(name) {
  const path = folder();
  mkdirSync(join(path, "node_modules"));
  cpSync(HERE, join(path, "node_modules/hopline"), { recursive: true });
  cpSync(packageOf(name), join(path, "node_modules/undici"), { recursive: true });
  cpSync(fileURLToPath(new URL("programs/through.mjs", import.meta.url)), join(path, "through.mjs"));
  return path;
}

test("a site that blocks an exit after ten requests gives each page once, by each `undici`", { timeout: 120_000 }, async (t) => {
  const service = await site(t);
  await service.control("target", { block_after: 10 });
  const all = Object.entries(NODES).flatMap(([node, path]) => ["undici6", "undici", "undici8"].map((name) => [`${name}-${node}`, name, path]));
  const able = all.filter(([, name, path]) => existsSync(path) && !(name === "undici8" && path === process.execPath && Number(process.versions.node.split(".")[0]) < 22));
  await Promise.all(able.map(async ([host, name, node]) => {
    const environment = { HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url, SITE: at(service, host).slice(0, -1), CA: service.tls_ca, NODE_PATH: "" };
    const path = project(name);
    const { out, errors } = await program(join(path, "through.mjs"), environment, [], path, node, 110_000).ended;
    assert.ok(out, `${host}: ${errors}`);
    const told = JSON.parse(out);
    assert.deepEqual([told.statuses, told.leased], [Array(60).fill(200), 0], host);
    const came = (await visits(service)).filter((visit) => visit.host.startsWith(`${host}.`));
    const blocked = came.filter(({ status }) => status === 403);
    const served = came.filter(({ status }) => status === 200).map((visit) => visit.path);
    assert.deepEqual([served.length, new Set(served).size, came.length], [60, 60, 60 + blocked.length], host);
    const exits = new Set(came.map(({ exit }) => exit));
    assert.equal(new Set(came.map(({ connection }) => connection)).size, exits.size, host);
    for (const exit of exits) {
      const last = came.findLast((visit) => visit.exit === exit);
      assert.ok(blocked.every((visit) => visit.exit !== exit || visit === last), `${host}: a request went through an exit that was blocked`);
    }
    assert.equal(told.sessions.length, 3);
    const rotations = async () => (await service.state()).sessions.filter(({ session_id }) => told.sessions.includes(session_id)).reduce((sum, { rotations }) => sum + rotations, 0);
    // Its program ends before the last of its exits are changed.
    assert.ok((await rotations()) <= blocked.length && blocked.length > 0, host);
  }));
  assert.equal((await service.state()).charges.length, 3 * able.length);
});

test("a site that blocks everybody is asked three times for a read and once for a write, and nothing is bought for it", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  await service.control("target", { block_all_ms: 600_000 });
  const { pool, dispatcher } = await open(t, service, 3);
  const through = dispatcher();
  const once = async function* () {
    yield "a body";
  };
  assert.equal((await fetch(at(service, "a", "/write"), { method: "POST", body: "a body", dispatcher: through })).status, 403);
  const { statusCode, body } = await undici.request(at(service, "b", "/once"), { method: "GET", body: once(), dispatcher: through });
  await body.dump();
  assert.equal(statusCode, 403);
  const page = await fetch(at(service, "c", "/read"), { dispatcher: through });
  assert.deepEqual([page.status, JSON.parse(await page.text()).path], [403, "/read"]);
  const paths = (await visits(service)).map(({ path }) => path);
  assert.deepEqual(["/write", "/once"].map((one) => paths.filter((path) => path === one).length), [1, 1]);
  assert.ok(paths.length <= 5 && (await service.state()).charges.length <= 3);
  const rotations = (await service.state()).sessions.reduce((sum, session) => sum + session.rotations, 0);
  assert.ok(rotations <= 4, `${rotations} rotations`);
  await pool.close();
});

test("an answer is handed over where no other session is to be had for its repeat", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { pool, dispatcher } = await open(t, service, 2);
  const leases = await Promise.all([pool.acquire(), pool.acquire()]);
  leases[0].release();
  await service.control("target", { block_after: 0 });
  for (const method of ["GET", "HEAD"]) {
    const page = await fetch(at(service, "a", `/${method}`), { method, dispatcher: dispatcher({ timeoutMs: 1000 }) }).catch((error) => error);
    // The session that was blocked may be changed by then, or rest.
    if (page instanceof Error) assert.equal(page.cause.kind, "unavailable");
    else assert.deepEqual([page.status, (await page.text()).length > 0], [403, method === "GET"]);
  }
  leases[1].release();
  await none(pool);
});

test("a held pool is the cause of the error, and a closed one too", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { pool, dispatcher } = await open(t, service, 3);
  const through = dispatcher();
  await pool.pause();
  const error = await fetch(at(service, "a"), { dispatcher: through }).catch((error) => error);
  assert.deepEqual([error.constructor, error.cause.kind, error.cause.reason], [TypeError, "unavailable", "paused"]);
  assert.match(error.cause.message, /3 sessions: /);
  await assert.rejects(undici.request(at(service, "a"), { dispatcher: through }), { kind: "unavailable" });
  await pool.resume();
  assert.equal((await fetch(at(service, "a"), { dispatcher: through })).status, 200);
  await pool.close();
  await assert.rejects(undici.request(at(service, "a"), { dispatcher: through }), { kind: "misuse" });
});

test("a hundred requests at once share three sessions, with a connection each", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { pool, dispatcher } = await open(t, service, 3);
  const through = dispatcher();
  const pages = await Promise.all(Array.from({ length: 100 }, async (_, number) => {
    const page = await fetch(at(service, "a", `/${number}`), { dispatcher: through });
    await page.text();
    return page.status;
  }));
  assert.deepEqual(pages, Array(100).fill(200));
  const came = await visits(service);
  const [exits, connections] = ["exit", "connection"].map((which) => new Set(came.map((visit) => visit[which])).size);
  assert.ok(came.length === 100 && exits === connections && exits <= 3);
  assert.equal((await pool.status()).leased, 0);
});

test("a request that is aborted, a body that is cancelled and one that breaks off give their leases back", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const server = createServer((request, answer) => {
    if (request.url === "/hang") return;
    answer.writeHead(200, { "content-length": "1000" });
    answer.write("half of it");
    if (request.url === "/broken") setTimeout(() => answer.destroy(), 50);
  }).listen(0, "127.0.0.1");
  t.after(() => (server.closeAllConnections(), server.close()));
  await once(server, "listening");
  const url = `http://shop.localhost:${server.address().port}`;
  const { pool, dispatcher } = await open(t, service, 1);
  const through = dispatcher();
  await assert.rejects(fetch(`${url}/hang`, { dispatcher: through, signal: AbortSignal.timeout(300) }), { name: "TimeoutError" });
  await none(pool);
  const drip = await fetch(`${url}/drip`, { dispatcher: through });
  assert.equal((await pool.status()).leased, 1);
  await drip.body.cancel();
  await none(pool);
  const { body } = await undici.request(`${url}/drip`, { dispatcher: through });
  body.on("error", () => {}).destroy();
  await none(pool);
  await assert.rejects((await fetch(`${url}/broken`, { dispatcher: through })).text());
  await none(pool);
  // While it waits for a session.
  const lease = await pool.acquire();
  await assert.rejects(fetch(`${url}/hang`, { dispatcher: through, signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
  await assert.rejects(undici.request(`${url}/hang`, { dispatcher: through, signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
  assert.equal((await pool.status()).waiting, 0);
  lease.release();
});

test("a dispatcher of the whole program leaves the client's own requests alone", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { pool, dispatcher } = await open(t, service, 2);
  const before = undici.getGlobalDispatcher();
  t.after(() => undici.setGlobalDispatcher(before));
  undici.setGlobalDispatcher(dispatcher());
  const page = await fetch(at(service, "a"));
  assert.match((await page.json()).address, /^127\.64\./);
  await none(pool);
});

test("a key keeps its exit, and a rule of the pool is asked of each answer", { timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const { pool, dispatcher } = await open(t, service, 3, { blocked: ({ status, headers }) => status === 200 && headers["content-type"] === undefined });
  const through = dispatcher({ key: "an account" });
  const exits = await Promise.all(Array.from({ length: 5 }, async () => (await (await fetch(at(service, "a"), { dispatcher: through })).json()).address));
  assert.equal(new Set(exits).size, 1);
  await pool.close();
});
