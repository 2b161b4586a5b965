// The store in a PostgreSQL database: what every store must do, over a server of the tests' own, and what becomes of a client whose server goes
// away or whose claims end.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";

import { PostgresStore } from "hopline/postgres";

import { Server, skip } from "./lib/postgres.mjs";
import { WANTED, sandbox } from "./lib/sandbox.mjs";
import { ask, runSuite } from "./lib/suite.mjs";

const CASES = join(process.env.HOPLINE_VECTORS, "../store");
const [ONE, TWO] = ["1", "2"].map((digit) => `5e.i${digit.padStart(32, "0")}`);
const data = (text) => new TextEncoder().encode(text);

let server;
before(async () => {
  if (!skip) server = await Server.start();
});
beforeEach(() => server?.empty());
after(() => server?.close());

/** The claims of a client end, as after a minute without a sign of life. */
const endClaims = (name) => server.sql("update hopline.owners set until = now() - interval '1 second' where id = (select owner from hopline.names where name = $1)", [name]);

const cases = () => readdirSync(CASES).filter((name) => name.endsWith(".json")).map((name) => [name, JSON.parse(readFileSync(join(CASES, name), "utf8"))]);

/** The server without a name, and the clients of a case. */
async function stage() {
  await server.empty();
  const [clock, clients] = [{}, []];
  /** The owner that a client is, as its last statement says. */
  const ownerOf = async (name) => {
    const [[query]] = await server.sql("select query from pg_stat_activity where application_name = $1 and query like '%\"hopline\".%'", [name]);
    return /'([0-9a-f-]{36})'/.exec(query)[1];
  };
  const ends = async (name) => server.sql("update hopline.owners set until = now() - interval '1 second' where id = $1", [await ownerOf(name)]);
  return {
    open() {
      const name = `client-${clients.length}`;
      const store = new PostgresStore(`${server.dsn}&application_name=${name}`, { now: () => clock.now });
      const client = { name, call: (method, ...given) => ask(store, method, ...given), close: () => store.close(), die: () => ends(name) };
      clients.push(client);
      return client;
    },
    set(now) {
      clock.now = now;
    },
    endClaims: ({ name }) => ends(name),
    end: () => Promise.all(clients.map((client) => client.close())),
  };
}

test("the store in a database does what every store must", { skip, timeout: 600_000 }, async () => {
  const failures = [];
  let count = 0;
  // One database is the stage of one case at a time.
  for (const [name, { cases: all }] of cases()) {
    for (const each of all) {
      const told = await runSuite([[name, { cases: [each] }]], ["leases"], stage);
      count += told.cases;
      failures.push(...told.failures);
    }
  }
  console.log(`${count} cases`);
  assert.ok(count > 100, `${count}`);
  assert.deepEqual(failures, []);
});

test("four clients buy an intent once, under a cap that holds for all of them", { skip, timeout: 300_000 }, async (t) => {
  const service = await sandbox(t, "--balance", "1000", "--rate-limit", "100000");
  const agents = Array.from({ length: 4 }, () => service.agent({ store: new PostgresStore(server.dsn), dailyCapUsd: "11.99" }));
  const intents = ["a", "b", "c", "d"];
  const calls = agents.flatMap((agent) => intents.map((intent) => agent.createSession(WANTED, { intent })));
  const came = await Promise.allSettled(calls);
  const sold = (await service.state()).charges.map(({ amount }) => amount);
  assert.deepEqual(sold, [4, 4], inspect(came));
  assert.deepEqual(await server.sql("select sum(sum)::text from hopline.days where day > 0"), [["8"]]);
  await Promise.all(agents.map((agent) => agent.close()));
  assert.deepEqual(await server.sql("select count(*)::int from hopline.names where owner is not null"), [[0]]);
});

test("a client whose claims ended can't write, hears of it, and goes on as another owner", { skip, timeout: 60_000 }, async () => {
  const [first, second] = [new PostgresStore(server.dsn), new PostgresStore(server.dsn)];
  let told = 0;
  first.onLost(() => (told += 1));
  assert.equal(await first.put(ONE, data("1"), { new: true }), "done");
  assert.ok(first.vouches());
  assert.deepEqual(await second.claim([ONE], 1), { busy: data("1") });
  await endClaims(ONE);
  assert.deepEqual([...(await second.claim([ONE], 1)).claimed], [[ONE, data("1")]]);
  assert.equal(await first.put(ONE, data("2")), "lost");
  assert.equal(told, 1);
  assert.equal(await first.put(TWO, data("2"), { new: true }), "done");
  assert.equal(await second.put(ONE, data("3"), { release: true }), "done");
  assert.deepEqual([...(await first.claim([ONE], 1)).claimed], [[ONE, data("3")]]);
  await Promise.all([first.close(), second.close()]);
});

test("while the server is away nothing is bought, and afterwards the same start goes on", { skip, timeout: 300_000 }, async (t) => {
  const service = await sandbox(t);
  const agent = service.agent({ store: new PostgresStore(server.dsn) });
  const { session_id: session } = await agent.createSession(WANTED, { intent: "a" });
  await server.stop();
  await assert.rejects(agent.createSession(WANTED, { intent: "b" }), (error) => {
    assert.equal(error.kind, "store");
    assert.match(error.message, /the database can't be reached/);
    return true;
  });
  assert.equal((await service.state()).charges.length, 1);
  await server.begin();
  assert.equal((await agent.createSession(WANTED, { intent: "a" })).session_id, session);
  await agent.createSession(WANTED, { intent: "b" });
  assert.equal((await service.state()).charges.length, 2);
  await agent.close();
});

test("a connection that is lost before or after a call does no harm", { skip, timeout: 60_000 }, async () => {
  const store = new PostgresStore(server.dsn);
  const cut = () => server.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'worker'");
  assert.equal(await store.put(ONE, data("0"), { new: true }), "done");
  for (let n = 1; n <= 20; n += 1) {
    const [put] = await Promise.all([store.put(ONE, data(`${n}`)), cut()]);
    assert.equal(put, "done");
    const { granted } = await store.spend("5e", { entry: `${n}`, amount: "0.1", cap: "2" });
    assert.ok(granted);
  }
  assert.deepEqual(await server.sql("select sum(sum)::text from hopline.days where day > 0"), [["2.0"]]);
  assert.ok((await store.spend("5e", { entry: "more", amount: "0.01", cap: "2" })).over);
  await store.close();
});

test("a database that lost what it had confirmed is noticed", { skip, timeout: 60_000 }, async () => {
  const store = new PostgresStore(server.dsn);
  let told = 0;
  store.onLost(() => (told += 1));
  await store.put(ONE, data("1"), { new: true });
  await store.put(ONE, data("2"));
  await server.sql("update hopline.owners set last_call = 1");
  const warned = new Promise((resolve) => process.once("warning", resolve));
  await assert.rejects(store.put(ONE, data("3")), (error) => error.notOpened && /lost what it had confirmed/.test(error.message));
  assert.match((await warned).message, /lost what it had confirmed/);
  assert.ok(told === 1 && !store.vouches());
  await store.close();
});

test("no password is shown", { skip, timeout: 60_000 }, async () => {
  for (const address of ["postgresql://worker:canary@127.0.0.1:1/db", "postgresql://worker:can/ary@127.0.0.1:1/db", "postgresql://worker:c%61nary@127.0.0.1:1/db?password=canary"]) {
    const store = new PostgresStore(address);
    const error = await store.claim([ONE], 1).catch((error) => error);
    assert.ok(error.notOpened, inspect(error));
    assert.doesNotMatch([inspect(store, { depth: 9, showHidden: true }), JSON.stringify(store), inspect(error), error.stack].join(), /canary|c%61nary|ary@/);
    await store.close();
  }
  assert.equal(inspect(new PostgresStore("postgresql://me:canary@db.example/x?sslmode=require&password=canary")), "PostgresStore(postgresql://me@db.example/x?sslmode=require)");
});

test("a database without tables says what makes them", { skip, timeout: 60_000 }, async () => {
  const store = new PostgresStore(server.admin, { schema: "other" });
  await assert.rejects(store.claim([ONE], 1), /no tables of Hopline: `hopline store init`/);
  await store.close();
});

test("the program of the page buys once, however often it is started", { skip, timeout: 300_000 }, async (t) => {
  const service = await sandbox(t);
  const env = { ...process.env, HOPLINE_STORE: server.dsn, HOPLINE_BASE_URL: service.agent_url, HOPLINE_API_KEY: service.api_key };
  const run = async () => (await promisify(execFile)(process.execPath, [fileURLToPath(new URL("programs/on-postgres.mjs", import.meta.url))], { env })).stdout;
  assert.equal(await run(), await run());
  assert.equal((await service.state()).charges.length, 1);
});
