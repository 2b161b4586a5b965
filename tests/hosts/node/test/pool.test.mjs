// Pools of sessions, against the sandbox and through its real proxies.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { AgentClient, FolderStore, cheapest } from "hopline";

import { WANTED, folder, program, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

/** A service that has room for many. */
const ROOM = ["--session-limit", "1000", "--rate-limit", "10000000", "--balance", "100000"];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const alive = (state) => state.sessions.filter(({ status }) => status === "creating" || status === "active").length;

/** The sum of a status's counts. */
const STATES = ["ready", "leased", "creating", "changing", "resting", "in_doubt", "empty", "with_others", "free_in_store", "unknown"];
const sum = (status) => STATES.reduce((before, state) => before + status[state], 0);

test("opening a pool buys nothing, and a lease is a session of a pool that nobody else has", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const agent = service.agent({ store: new FolderStore(folder()), dailyCapUsd: 500 });
  const pool = await agent.openPool("shop", { ...WANTED, size: 3, protocol: "http" });
  await pause(300);
  assert.deepEqual([(await service.state()).charges.length, pool.name], [0, "shop"]);
  const leases = await Promise.all([1, 2, 3].map(() => pool.acquire({ target: "shop.example" })));
  assert.deepEqual(new Set(leases.map(({ sessionId }) => sessionId)).size, 3);
  assert.deepEqual(leases.map(({ slot }) => slot).sort(), [0, 1, 2]);
  for (const { valid, target, generation, proxy } of leases) assert.deepEqual([valid, target, typeof generation, proxy.protocol], [true, "shop.example", "number", "http"]);
  const status = await pool.status();
  assert.deepEqual([status.leased, status.ready, sum(status), status.slots.length], [3, 0, 3, 3]);
  for (const { state, reason, purchase } of status.slots) assert.deepEqual([state, reason, purchase], ["leased", undefined, 1]);
  // The fourth waits until one is back, and nothing is bought for it.
  const fourth = pool.acquire();
  await pause(100);
  leases[1].data.cookie = "mine";
  leases[1].release();
  leases[1].release();
  const lent = await fourth;
  assert.deepEqual([lent.sessionId, lent.data, leases[1].valid], [leases[1].sessionId, { cookie: "mine" }, false]);
  await assert.rejects(pool.acquire({ timeoutMs: 50 }), { kind: "unavailable", operation: "acquire", effect: "none" });
  assert.throws(() => leases[1].dispatcher(), { kind: "misuse" });
  assert.equal(leases[1].observe(200), "give_back");
  assert.equal(await pool.withLease({ timeoutMs: 50 }, () => 7).catch((error) => error.kind), "unavailable");
  for (const lease of [leases[0], leases[2], lent]) lease.release();
  assert.equal(await pool.withLease({ key: "a" }, async ({ sessionId }) => (await pool.withLease({}, (other) => other.sessionId)) !== sessionId), true);
  await assert.rejects(pool.withLease({}, () => Promise.reject(new Error("of the caller's own"))), /of the caller's own/);
  assert.equal((await pool.status()).leased, 0);
  await pool.close();
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.length, alive({ sessions })], [3, 3, 3]);
  await assert.rejects(pool.acquire(), { kind: "misuse" });
});

test("a pool takes the cheapest product for each purchase, and the next one where that is sold out", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const agent = service.agent({ store: new FolderStore(folder()), dailyCapUsd: 500 });
  const pool = await agent.openPool("shop", { size: 2, product: cheapest({ type: "dynamic", maxUnitPrice: 5 }) });
  const first = await pool.acquire();
  await service.fault({ kind: "error", code: "PRODUCT_OUT_OF_STOCK", stored: true }, "create_session");
  const second = await pool.acquire();
  assert.deepEqual((await service.state()).sessions.map(({ product_no: product }) => product).sort(), ["dynamic-us", "dynamic-world"]);
  for (const lease of [first, second]) lease.release();
  await pool.drain();
  await assert.rejects(agent.openPool("other", { size: 1, product: "dynamic-world" }), { kind: "invalid", field: "product" });
  await agent.close();
});

test("a block rotates the session once its lease is back, and the next lease has another exit and no cookies", async (t) => {
  const { fetch } = tool("undici");
  const service = await sandbox(t, ...ROOM);
  const agent = service.agent({ dailyCapUsd: 500 });
  const pool = await agent.openPool("shop", { ...WANTED, size: 1, protocol: "http", keepReady: 1 });
  await pool.waitReady();
  const target = "shop.example";
  const get = (lease) => fetch(service.target_url, { dispatcher: lease.dispatcher() });
  const first = await pool.acquire({ target });
  assert.equal(first.observe(await get(first)), "keep");
  first.data.cookie = "a";
  await service.control("target", { block_first_exit: true });
  const blocked = await get(first);
  assert.deepEqual([blocked.status, first.observe(blocked), first.data], [403, "give_back", { cookie: "a" }]);
  // The exit does not change while it is lent.
  assert.deepEqual([first.valid, (await get(first)).status], [true, 403]);
  first.release();
  const second = await pool.acquire({ target });
  assert.deepEqual([second.sessionId, second.generation > first.generation, second.data], [first.sessionId, true, {}]);
  const answer = await get(second);
  assert.deepEqual([answer.status, second.observe(answer)], [200, "keep"]);
  // A lease of the same exit shares the connections.
  const dispatcher = second.dispatcher();
  second.release();
  await pool.withLease({ target }, (third) => assert.equal(third.dispatcher(), dispatcher));
  await pool.drain();
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, alive({ sessions })], [1, 0]);
});

test("a session rests for a target as long as the target asks, and is lent for others meanwhile", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const pool = await service.agent({ dailyCapUsd: 500 }).openPool("shop", { ...WANTED, size: 1 });
  const slowDown = { status: 429, headers: { "retry-after": "2" } };
  for (const seen of [new Response(null, slowDown), Object.assign(new Error("429"), { response: slowDown })]) {
    const begun = performance.now();
    await pool.withLease({ target: "a" }, (lease) => assert.equal(lease.observe(seen), "give_back"));
    // The session is lent for the one while the other waits for it.
    const order = [];
    const waiting = pool.withLease({ target: "a", timeoutMs: 30_000 }, (lease) => order.push("a") && assert.equal(lease.observe(200), "keep"));
    await pool.withLease({ target: "b" }, (lease) => order.push("b") && assert.equal(lease.observe(200), "keep"));
    await waiting;
    const waited = performance.now() - begun;
    assert.deepEqual(order, ["b", "a"]);
    assert.ok(waited > 1900, `${waited}`);
  }
});

test("what a pool is asked is checked, and errors name options as they are spelled", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const agent = service.agent();
  const open = (more) => agent.openPool("shop", { ...WANTED, size: 2, dailyCapUsd: 10, ...more });
  for (const [more, field] of [
    [{ dailyCapUsd: undefined }, "dailyCapUsd"],
    [{ size: 0 }, "size"],
    [{ keepReady: 3 }, "keepReady"],
    [{ maxWaiters: -1 }, "maxWaiters"],
    [{ leasesPerSession: "1" }, "leasesPerSession"],
    [{ max_waiters: 1 }, "options"],
    [{ replace: "sometimes" }, "replace"],
    [{ session_type: "other" }, "session_type"],
  ]) {
    await assert.rejects(open(more), { kind: "invalid", effect: "none", operation: "open_pool", field }, JSON.stringify(more));
  }
  await assert.rejects(agent.openPool("", { ...WANTED, size: 2, dailyCapUsd: 10 }), { field: "name" });
  for (const options of [null, [], 7]) await assert.rejects(agent.openPool("shop", options), { kind: "invalid" });
  const pool = await open({});
  await assert.rejects(open({}), { kind: "invalid", field: "name" });
  await assert.rejects(pool.acquire({ timeoutMs: -1 }), { kind: "invalid", field: "timeoutMs" });
  await assert.rejects(pool.acquire({ signal: 7 }), { kind: "invalid", field: "signal" });
  await assert.rejects(pool.acquire(null), { kind: "invalid" });
  const told = [];
  agent.onEvent(({ event, level, reason }) => event.startsWith("pool_") && told.push([event, level, reason]));
  await pool.pause();
  const { hold } = await pool.status();
  assert.deepEqual([hold.reason, hold.needs], ["paused", "caller"]);
  await assert.rejects(pool.acquire({ timeoutMs: 1000 }), { kind: "unavailable" });
  await pool.resume();
  assert.deepEqual(told, [["pool_held", "info", "paused"], ["pool_freed", "info", undefined]]);
  await pool.withLease({}, ({ valid }) => assert.ok(valid));
  await agent.close();
  await assert.rejects(pool.acquire(), { kind: "misuse" });
});

test("10 000 cancelled acquires under load lose no lease", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, ...ROOM);
  const size = 4;
  const agent = service.agent({ dailyCapUsd: 500 });
  const pool = await agent.openPool("shop", { ...WANTED, size, keepReady: size });
  await pool.waitReady(size);
  let isOver = false;
  let lent = 0;
  const work = async () => {
    while (!isOver) {
      await pool.withLease({}, async ({ valid }) => {
        assert.ok(valid);
        lent += 1;
        await pause(lent % 3);
      });
    }
  };
  const load = Promise.all(Array.from({ length: 6 }, work));
  let [cancelled, granted] = [0, 0];
  for (let round = 0; round < 100; round += 1) {
    const asked = Array.from({ length: 100 }, async (_, n) => {
      const abort = new AbortController();
      const given = pool.acquire({ signal: abort.signal });
      // Before it begins, as it begins, in the same turn as others, and a moment later.
      if (n % 4 === 0) abort.abort();
      else if (n % 4 === 1) queueMicrotask(() => abort.abort());
      else if (n % 4 === 2) setImmediate(() => abort.abort());
      else setTimeout(() => abort.abort(), n % 7);
      try {
        const lease = await given;
        granted += 1;
        await pause(1);
        lease.release();
      } catch (error) {
        assert.equal(error.kind, "cancelled", error.stack);
        cancelled += 1;
      }
    });
    await Promise.all(asked);
  }
  isOver = true;
  await load;
  const status = await pool.status();
  console.log(`cancelled: ${cancelled}, granted all the same: ${granted}, lent beside them: ${lent}`);
  assert.deepEqual([cancelled + granted, status.leased, status.waiting, status.ready], [10_000, 0, 0, size]);
  assert.ok(cancelled > 5000 && lent > 100);
  const all = await Promise.all(Array.from({ length: size }, () => pool.acquire({ timeoutMs: 1000 })));
  assert.equal(new Set(all.map(({ slot }) => slot)).size, size);
  assert.equal((await service.state()).charges.length, size);
});

test("four processes share the slots of one folder, own eight together, and none waits for what another holds", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, ...ROOM);
  const environment = { FOLDER: folder(), HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url };
  const programs = Array.from({ length: 4 }, () => program("pooled.mjs", environment));
  // Each keeps its sessions until all have said which they have.
  const told = await Promise.all(programs.map(async ({ child, ended }) => {
    const line = once(child.stdout, "data").then(([text]) => text);
    const out = await Promise.race([line, ended.then(({ errors }) => assert.fail(errors))]);
    return JSON.parse(out);
  }));
  programs.forEach(({ child }) => child.stdin.end());
  for (const { code, errors } of await Promise.all(programs.map(({ ended }) => ended))) assert.equal(code, 0, errors);
  console.log(`four processes: ${told.map(({ took }) => `${took.join(" and ")} ms`).join(", ")}`);
  const sessions = told.flatMap(({ sessions }) => sessions);
  assert.deepEqual([sessions.length, new Set(sessions).size], [8, 8]);
  const state = await service.state();
  assert.deepEqual([state.charges.length, alive(state)], [8, 8]);
});

test("a lease that is garbage-collected goes back", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t, ...ROOM);
  const { out, code, errors } = await program("leaky.mjs", { HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url, NODE_OPTIONS: "--expose-gc" }).ended;
  assert.deepEqual([code, out.trim()], [0, "1"], errors);
});

test("a page has no pools, and says so", async () => {
  const web = await import(pathToFileURL(createRequire(import.meta.url).resolve("hopline").replace("node.cjs", "web.mjs")));
  const agent = new web.AgentClient({ baseUrl: "https://api.example/v1" });
  await assert.rejects(agent.openPool("shop", {}), { kind: "misuse", operation: "open_pool", effect: "none", message: /a page has no pools/ });
});

test("dispatchers are closed with their pool or its client, whoever closed them before, and a closed client's pool may be closed", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const unhandled = [];
  const hear = (error) => unhandled.push(error);
  process.on("unhandledRejection", hear);
  t.after(() => process.off("unhandledRejection", hear));
  const open = async () => {
    const agent = service.agent({ dailyCapUsd: 500 });
    const pool = await agent.openPool("shop", { ...WANTED, size: 1, protocol: "http" });
    const dispatcher = await pool.withLease(async (lease) => {
      const given = lease.dispatcher();
      await (await tool("undici").fetch(service.target_url, { dispatcher: given })).text();
      return given;
    });
    return { agent, pool, dispatcher };
  };
  const ways = {
    "the pool": ({ pool }) => pool.close(),
    "the client": ({ agent }) => agent.close(),
    "the pool and the client, at once": async ({ agent, pool }) => Promise.all([pool.close(), agent.close()]),
    "the client, then the pool": async ({ agent, pool }) => (await agent.close(), pool.close()),
    "its caller, then the pool": async ({ pool, dispatcher }) => (await dispatcher.destroy(), pool.drain()),
  };
  for (const [who, close] of Object.entries(ways)) {
    const opened = await open();
    await close(opened);
    await opened.agent.close();
    assert.ok(opened.dispatcher.closed || opened.dispatcher.destroyed, `closed by ${who}`);
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(unhandled, []);
});

test("the data of a lease outlive its process, a discarded session is not lent again, and the caller's rule says what a block is", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const place = folder();
  const opened = async (more) => {
    const agent = service.agent({ store: new FolderStore(place), dailyCapUsd: 500 });
    return { agent, pool: await agent.openPool("data", { ...WANTED, size: 2, protocol: "http", ...more }) };
  };
  const first = await opened();
  const [id] = await first.pool.withLease((lease) => {
    Object.assign(lease.data, { cookies: { a: "1" }, client: new Map(), run: () => {} });
    return [lease.sessionId];
  });
  await first.pool.withLease(({ data }) => assert.ok(data.client instanceof Map));
  await first.agent.close();
  const second = await opened({ blocked: ({ body }) => body.includes("robot") });
  await second.pool.withLease((lease) => {
    assert.deepEqual([lease.sessionId, lease.data], [id, { cookies: { a: "1" } }]);
    assert.equal(lease.observe(200), "keep");
    lease.discard();
  });
  let seen;
  const other = await second.pool.withLease({ target: "shop.example" }, (lease) => {
    assert.equal(lease.observe({ status: 200, body: "are you a robot?" }), "give_back");
    assert.ok(lease.retryAt > new Date());
    seen = lease;
    return lease.sessionId;
  });
  assert.notEqual(other, id);
  // Whoever is to wait reads it after the block.
  assert.ok(seen.retryAt > new Date());
  assert.notEqual(await second.pool.withLease({ avoid: other }, ({ sessionId }) => sessionId), other);
  await assert.rejects(second.agent.openPool("odd", { ...WANTED, size: 1, blocked: 7 }), { kind: "invalid", field: "blocked" });
  await second.agent.close();
});

test("data of an exit that another client has changed win over those here, and data that are too long are reported", async (t) => {
  const service = await sandbox(t, ...ROOM);
  const place = folder();
  const told = [];
  const log = { warn: (message, { operation, pool, bytes }) => told.push([message, operation, pool, bytes]) };
  const opened = async (more) => {
    const agent = service.agent({ store: new FolderStore(place), dailyCapUsd: 500, ...more });
    return { agent, pool: await agent.openPool("data", { ...WANTED, size: 1, protocol: "http" }) };
  };
  const elsewhere = async (use) => {
    const { agent, pool } = await opened();
    await pool.withLease({ timeoutMs: 30_000 }, use);
    await agent.close();
  };
  const [client, held, { pool }] = [new Map(), { agent: new Map() }, await opened({ log })];
  const [id, generation, dispatcher] = await pool.withLease((lease) => {
    Object.assign(lease.data, { cookies: "ours", mine: [1], client, held });
    return [lease.sessionId, lease.generation, lease.dispatcher()];
  });
  await elsewhere((lease) => {
    assert.deepEqual([lease.sessionId, lease.generation, lease.data], [id, generation, { cookies: "ours", mine: [1] }]);
    delete lease.data.mine;
    lease.data.cookies = "theirs";
  });
  await pool.withLease((lease) => {
    assert.deepEqual([lease.sessionId, lease.generation, lease.data], [id, generation, { cookies: "theirs", client, held }]);
    assert.deepEqual([lease.data.client === client, lease.data.held === held, lease.dispatcher() === dispatcher], [true, true, true]);
    lease.data.long = "x".repeat(5000);
  });
  assert.deepEqual(told, [["hopline: acquire: lease_data_too_long", "acquire", "data", JSON.stringify({ cookies: "theirs", long: "x".repeat(5000) }).length]]);
  // What nobody else has changed stays as it is here, and so do data that are too long for the store.
  await elsewhere(({ data }) => assert.deepEqual(data, { cookies: "theirs" }));
  await pool.withLease(({ data }) => assert.deepEqual(data, { cookies: "theirs", client, held, long: "x".repeat(5000) }));
  assert.equal(told.length, 1);
});

test("a wrong option of a pool or of a lease is named as it was written, with the one that may be meant", async (t) => {
  const agent = new AgentClient({ baseUrl: "http://127.0.0.1:9/v1", apiKey: "k" });
  t.after(() => agent.close());
  const right = { size: 1, session_type: "dynamic", product_no: "p", dailyCapUsd: 5 };
  const says = (call, words) => assert.rejects(call, ({ kind, effect, message }) => (assert.deepEqual([kind, effect], ["invalid", "none"]), assert.ok(message.includes(words), message), true));
  for (const [option, words] of [
    ["maxCreating", "unknown field `maxCreating`; nothing was changed"],
    ["max_waiters", "unknown field `max_waiters`; options are spelled like `maxWaiters`"],
    ["keepready", "did you mean `keepReady`?"],
    ["timeout", "unknown field `timeout`; nothing was changed"],
  ]) await says(agent.openPool("wrong", { ...right, [option]: 1 }), words);
  const pool = await agent.openPool("right", right);
  await says(pool.acquire({ timeout: 1 }), "did you mean `timeoutMs`?");
  await says(pool.acquire({ nonsense: 1 }), "there is `target`, `key`, `avoid`, `timeoutMs`, `signal`");
  await pool.close();
});

test("a lease whose pool was closed has no dispatcher any more", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const pool = await agent.openPool("closed", { size: 1, session_type: "dynamic", product_no: "dynamic-world", quantity: 1, protocol: "http", dailyCapUsd: 50 });
  const lease = await pool.acquire();
  assert.ok(lease.dispatcher());
  await pool.close({ graceMs: 0 });
  assert.throws(() => lease.dispatcher(), ({ kind, message }) => kind === "misuse" && message.includes("the lease is not valid any more"));
  lease.release();
  assert.throws(() => lease.dispatcher(), ({ kind, message }) => kind === "misuse" && message.includes("the lease was given back"));
});

test("a caller that tries again at once, in a loop, lets the rest of its program go on", async (t) => {
  const service = await sandbox(t, ...ROOM, "--balance", "0");
  const agent = service.agent({ dailyCapUsd: 500 });
  const pool = await agent.openPool("shop", { ...WANTED, size: 1 });
  /** Acquires until a timer says that it is enough, or until no timer has rung for far too long. */
  const loop = async (kind) => {
    let [isEnough, failures, last] = [false, 0, undefined];
    const begun = performance.now();
    setTimeout(() => (isEnough = true), 500);
    while (!isEnough && performance.now() - begun < 20_000) {
      last = await pool.acquire({ timeoutMs: 5000 }).catch((error) => error); // before the next trial of a purchase
      failures += 1;
    }
    assert.deepEqual([isEnough, last.kind], [true, kind], last.message);
    assert.ok(failures > 1, `${failures}`);
  };
  await loop("unavailable");
  await agent.close();
  await loop("misuse");
});
