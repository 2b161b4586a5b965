// Ownership: nothing stays owned that nobody holds, and a client that is gone lets go.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { cpSync, existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";

import { AgentClient, FolderStore } from "hopline";

import { OwnStore, SharedRecords } from "./lib/own-store.mjs";
import { WANTED, folder, program, sandbox } from "./lib/sandbox.mjs";
import { ask, runSuite } from "./lib/suite.mjs";

/** The names that somebody owns in a folder. */
const owned = (path) => (existsSync(join(path, "claims")) ? readdirSync(join(path, "claims")) : []);
/** The work that a command leaves is begun when it ends. */
async function settled(path, count) {
  for (const until = Date.now() + 60_000; owned(path).length !== count && Date.now() < until; ) await new Promise((resolve) => setTimeout(resolve, 5));
  return owned(path).length;
}

test("a store of a user's own does what every store must", async () => {
  const cases = join(process.env.HOPLINE_VECTORS, "../store");
  const files = readdirSync(cases).filter((name) => name.endsWith(".json")).map((name) => [name, JSON.parse(readFileSync(join(cases, name), "utf8"))]);
  const begin = () => {
    const [records, clock] = [new SharedRecords(), {}];
    const open = () => {
      const store = new OwnStore(records, { now: () => clock.now });
      return { call: (...given) => ask(store, ...given), close: () => store.close(), die: () => store.close() };
    };
    return { open, set: (now) => (clock.now = now), end() {} };
  };
  const { cases: count, failures, text } = await runSuite(files, [], begin);
  console.log(text);
  assert.ok(count > 80, `${count}`);
  assert.deepEqual(failures, []);
});

test("after every command no name is owned that is not held", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const agent = service.agent({ store: new FolderStore(path), dailyCapUsd: 90 });
  const left = async (held, work) => {
    const error = await Promise.resolve(work()).then(() => undefined, (error) => error);
    assert.equal(await settled(path, held), held, `${work}: ${error}: ${owned(path)}`);
    return error;
  };
  await left(0, () => agent.getBalance());
  await left(0, () => agent.createRecharge({ amount_usd: 50 }, { intent: "top-up" }));
  await left(0, () => agent.openSession({ ...WANTED, product_no: "no-such-product" }, { intent: "job-1" }));
  await left(0, () => agent.openSession(WANTED, { intent: "job-2", maxUnitPrice: 0 }));
  await service.fault({ kind: "drop_before" }, "create_session");
  const doubt = await left(0, () => agent.openSession(WANTED, { intent: "job-3", attempts: 1 }));
  assert.equal(doubt.kind, "in_doubt");
  await left(0, () => agent.saved());
  await left(0, () => agent.forget(doubt.record));
  await left(0, () => agent.settle(doubt.record, "not_happened"));
  await left(0, () => agent.reconcile(doubt.record));
  await left(1, () => agent.resume(doubt.record));
  await left(1, () => agent.resumeIntent("job-4"));
  let open;
  await left(2, async () => (open = await agent.openSession(WANTED, { intent: "job-5" })));
  await left(2, () => open.rotate());
  await left(2, () => agent.resumeAll());
  await left(1, () => open.release());
  await left(2, async () => (open = await agent.openSession(WANTED, { intent: "job-5" })));
  await left(1, () => open.terminate());
  await left(1, () => agent.openSession(WANTED, { intent: "job-5" }));
  await service.fault({ kind: "delay", ms: 60_000 }, "create_session");
  const givenUp = await left(1, () => agent.openSession(WANTED, { intent: "job-6", signal: AbortSignal.timeout(300) }));
  assert.equal(givenUp.kind, "cancelled");
  await left(1, () => agent.resumeAll());
  await agent.close();
  assert.deepEqual(owned(path), []);
});

test("a client that is dropped lets go of what it held", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t);
  const environment = { HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url, FOLDER: folder(), NODE_OPTIONS: "--expose-gc" };
  const { code, out, errors } = await program("dropper.mjs", environment).ended;
  assert.equal(code, 0, errors);
  assert.match(errors, /HoplineWarning: a client of Hopline that was made at dropper\.mjs:4 was not closed/);
  const [first, second] = JSON.parse(out);
  assert.equal(second, first);
  assert.equal((await service.state()).charges.length, 1);
});

test("a client that can't vouch for its claims sends nothing before it has put its record again", async (t) => {
  const service = await sandbox(t);
  let [puts, doubts, sent] = [0, 2, []];
  const store = new OwnStore();
  const put = store.put.bind(store);
  store.put = (...given) => ((puts += 1), put(...given));
  store.vouches = async () => (doubts -= 1) < 0;
  const agent = service.agent({ store, fetch: (url, init) => (sent.push(puts), fetch(url, init)) });
  await agent.createSession(WANTED);
  assert.ok(sent[0] >= 2, `it was put ${sent[0]} times before it was sent`);
  assert.equal((await service.state()).charges.length, 1);
});

test("a store that can't say whether its claims stand vouches for nothing, and holds nobody up", async (t) => {
  const service = await sandbox(t);
  const sent = [];
  const client = (vouches) => service.agent({ store: Object.assign(new OwnStore(), { vouches }), fetch: (url, init) => (sent.push(url), fetch(url, init)) });
  for (const vouches of [async () => Promise.reject(new Error("no database")), () => assert.fail("no database"), async () => undefined]) {
    const error = await client(vouches).openSession(WANTED, { intent: "job-17", attempts: 1 }).catch((error) => error);
    assert.deepEqual([error.kind, error.effect], ["unavailable", "none"], error.stack);
    assert.match(JSON.stringify(error), /the store did not vouch for its claims/);
  }
  const given = new AbortController();
  const waiting = client(() => (given.abort(), new Promise(() => {}))).openSession(WANTED, { intent: "job-17", signal: given.signal });
  await assert.rejects(waiting, { kind: "cancelled", effect: "none" });
  assert.deepEqual(sent, []);
});

test("a store that never says whether its claims stand holds nobody up for longer than a request may take", async () => {
  const store = Object.assign(new OwnStore(), { vouches: () => new Promise(() => {}) });
  const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store, fetch: () => assert.fail("it was sent") });
  const error = await agent.openSession(WANTED, { intent: "job-17", timeoutMs: 100, attempts: 1 }).catch((error) => error);
  assert.deepEqual([error.kind, error.effect], ["unavailable", "none"], error.stack);
  assert.match(JSON.stringify(error), /the store did not vouch for its claims/);
  await agent.close();
});

test("a store has one client at a time", async (t) => {
  const service = await sandbox(t);
  const records = new SharedRecords();
  const store = new OwnStore(records);
  const [first, second, unused] = [service.agent({ store }), service.agent({ store }), service.agent({ store })];
  const { session_id } = await first.openSession(WANTED, { intent: "job-17" });
  await assert.rejects(second.openSession(WANTED), { kind: "misuse", effect: "none", advice: "new_store", message: /this store has a client already/ });
  // One that was refused, or never used, neither keeps the store when it is closed nor lets go of what the other one has.
  await second.close();
  await unused.close();
  const other = service.agent({ store: new OwnStore(records) });
  await assert.rejects(other.openSession(WANTED, { intent: "job-17" }), { kind: "busy", session_id });
  await other.close();
  await first.releaseSession(session_id);
  await first.forget((await first.saved())[0].record);
  await first.close();
  assert.deepEqual(await service.agent({ store }).saved(), []);
});

test("claims that end while a client lives are heard of, and nothing is done twice", async (t) => {
  const service = await sandbox(t);
  const records = new SharedRecords();
  const store = new OwnStore(records);
  let lost;
  store.onLost = (tell) => (lost = tell);
  const [agent, other] = [service.agent({ store }), service.agent({ store: new OwnStore(records) })];
  const { session_id } = await agent.openSession(WANTED, { intent: "job-17" });
  await assert.rejects(other.openSession(WANTED, { intent: "job-17" }), { kind: "busy", session_id });
  await store.release();
  assert.equal((await other.openSession(WANTED, { intent: "job-17" })).session_id, session_id);
  lost();
  await assert.rejects(agent.openSession(WANTED, { intent: "job-17" }), { kind: "busy", session_id });
  await other.close();
  assert.equal((await agent.openSession(WANTED, { intent: "job-17" })).session_id, session_id);
  assert.equal((await service.state()).charges.length, 1);
});

test("a call waits for an intent that another client has, if it is told to", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const [one, two] = [1, 2].map(() => service.agent({ store: new FolderStore(path) }));
  const open = await one.openSession(WANTED, { intent: "job-17" });
  const waiting = two.openSession(WANTED, { intent: "job-17", waitForIntent: true, deadlineMs: 60_000 });
  await open.release();
  assert.equal((await waiting).session_id, open.session_id);
  assert.equal((await service.state()).charges.length, 1);
});

test("a client that is closed lets go of everything and answers everybody, though its store does not answer", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const turn = () => new Promise(setImmediate);
  const calls = {
    claim: (agent, signal) => agent.openSession(WANTED, { intent: "job-17", signal }),
    put: (agent, signal) => agent.openSession(WANTED, { intent: "job-17", signal }),
    list: (agent, signal) => agent.resumeAll({ signal }),
  };
  for (const [method, call] of Object.entries(calls)) {
    const records = new SharedRecords();
    let reached;
    const hangs = new Promise((resolve) => (reached = resolve));
    let late;
    const store = Object.assign(new OwnStore(records), { [method]: () => (reached(), new Promise((_, reject) => (late = reject))) });
    const told = [];
    const release = store.release.bind(store);
    store.release = async (names) => (told.push("release"), release(names));
    store.close = async () => told.push("close");
    const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store, fetch: () => assert.fail("it was sent") });
    const given = new AbortController();
    const result = call(agent, given.signal).catch((error) => error);
    await hangs;
    const closing = agent.close();
    for (let n = 0; n < 10; n += 1) await turn();
    assert.deepEqual(told, [], "it waits for what is asked");
    t.mock.timers.tick(10_000);
    await closing;
    assert.deepEqual(told, ["release", "close"], method);
    assert.deepEqual([...records.rows.values()].filter(({ owner }) => owner), []);
    const error = await result;
    assert.ok(["cancelled", "store"].includes(error.kind), error.stack);
    assert.deepEqual(getEventListeners(given.signal, "abort"), []);
    given.abort();
    late(new Error("too late"));
    await turn();
    const next = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store: Object.assign(store, { [method]: OwnStore.prototype[method] }), fetch: () => assert.fail("it was sent") });
    assert.deepEqual(await next.saved(), [], "the store may serve another client");
    await next.close();
  }
});

test("a call waits for its store for half a minute, and no other call of the store comes before the one that is late", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const turn = async () => {
    for (let n = 0; n < 20; n += 1) await new Promise(setImmediate);
  };
  for (const recovers of [true, false]) {
    const store = new OwnStore(new SharedRecords());
    const told = [];
    for (const method of ["put", "delete"]) {
      const own = store[method].bind(store);
      store[method] = (...given) => (told.push(method), own(...given));
    }
    const put = store.put;
    let answer;
    store.put = (...given) => new Promise((resolve) => (answer = () => resolve(put(...given))));
    const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store, fetch: () => assert.fail("it was sent") });
    let error;
    const buying = agent.createSession(WANTED).catch((thrown) => (error = thrown));
    await turn();
    t.mock.timers.tick(29_999);
    await turn();
    assert.equal(error, undefined);
    t.mock.timers.tick(1);
    await turn();
    assert.deepEqual([error, told], [undefined, []], "the deletion waits for what it deletes");
    store.put = put;
    if (recovers) answer();
    else t.mock.timers.tick(30_000);
    await buying;
    assert.deepEqual([error.kind, error.effect, told], recovers ? ["store", "none", ["put", "delete"]] : ["store", "unknown", []]);
    if (!recovers) answer();
    await turn();
    assert.deepEqual((await agent.saved()).length, recovers ? 0 : 1);
    await agent.close();
  }
});

test("a client is closed in time though its store does not answer whether it let go, or closed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const turn = () => new Promise(setImmediate);
  for (const method of ["release", "close"]) {
    const told = [];
    const hang = (name) => () => (told.push(name), name === method ? new Promise(() => {}) : undefined);
    const store = Object.assign(new OwnStore(), { release: hang("release"), close: hang("close") });
    const agent = new AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1", store, fetch: () => assert.fail("it was sent") });
    await agent.saved();
    const closing = agent.close();
    for (let n = 0; n < 10; n += 1) await turn();
    assert.equal(told.at(-1), method, "it waits for this");
    t.mock.timers.tick(2_000);
    await closing;
    assert.deepEqual(told, ["release", "close"], method);
  }
});

test("a scope ends no session that its client does not follow any more", async (t) => {
  const service = await sandbox(t);
  const records = new SharedRecords();
  const store = new OwnStore(records);
  let lost;
  store.onLost = (tell) => (lost = tell);
  const agent = service.agent({ store });
  const open = (intent) => agent.openSession(WANTED, { intent });
  const status = async ({ session_id }) => (await agent.getSession({ session_id })).status;

  const released = await open("job-1");
  await agent.releaseSession(released.session_id);
  await released.dispose();
  assert.equal(await status(released), "active");

  const taken = await open("job-2");
  const other = service.agent({ store: new OwnStore(records) });
  store.release();
  await other.openSession(WANTED, { intent: "job-2" });
  lost();
  // The name is asked for again, and is the other one's.
  while (await agent.observe(taken.session_id, { status: 200 })) await new Promise((resolve) => setTimeout(resolve, 5));
  await taken.dispose();
  assert.equal(await status(taken), "active");

  const over = await open("job-3");
  await agent.terminateSession({ session_id: over.session_id });
  await over.dispose();

  const used = await open("job-4");
  await used.dispose();
  assert.notEqual(await status(used), "active");
});

test("a store that answers with what is no answer has failed, and says so", async (t) => {
  const service = await sandbox(t);
  for (const [method, wrong] of [["claim", undefined], ["claim", { claimed: [] }], ["put", "perhaps"], ["put", true]]) {
    const agent = service.agent({ store: Object.assign(new OwnStore(), { [method]: async () => wrong }) });
    const error = await agent.openSession(WANTED, { intent: "job-17" }).catch((error) => error);
    assert.deepEqual([error.kind, error.effect], ["store", method === "claim" ? "unknown" : "none"], error.stack);
    assert.match(error.cause.message, new RegExp(`what \`${method}\` of this store answered`));
  }
  assert.throws(() => new AgentClient({ apiKey: "k", baseUrl: "https://api.example/v1", store: { claim() {} } }), { kind: "invalid" });
  assert.equal((await service.state()).charges.length, 0);
});

test("where another client of this process is in the way, as after a hot reload, the error says so", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  // A module that is loaded anew makes another client and forgets the first.
  const [first, again] = [1, 2].map(() => service.agent({ store: new FolderStore(path) }));
  await first.openSession(WANTED, { intent: "job-17" });
  await assert.rejects(again.openSession(WANTED, { intent: "job-17" }), ({ kind, effect, message }) => kind === "busy" && effect === "none" && /that client is one of this process: .*`globalThis\.agent \?\?= new AgentClient\(\)`/.test(message));
  await assert.rejects(again.openSession(WANTED, { intent: "job-17", waitForIntent: true, deadlineMs: 1 }), { kind: "busy", message: /one of this process/ });
  await first.close();
  assert.match((await again.openSession(WANTED, { intent: "job-17" })).session_id, /^ses_/);
});

test("a second copy of the package, as of a bundler or another version's folder, buys nothing that the first one has", async (t) => {
  const service = await sandbox(t);
  const place = join(folder(), "hopline");
  cpSync(dirname(createRequire(import.meta.url).resolve("hopline/package.json")), place, { recursive: true });
  const copy = await import(pathToFileURL(join(place, "node.mjs")));
  assert.notEqual(copy.AgentClient, AgentClient);
  const made = ({ AgentClient }, store) => new AgentClient({ apiKey: service.api_key, baseUrl: service.agent_url, store });
  const path = folder();
  const store = new FolderStore(path);
  const first = made({ AgentClient }, store);
  await first.openSession(WANTED, { intent: "job-17" });
  await assert.rejects(made(copy, store).openSession(WANTED, { intent: "job-17" }), { kind: "misuse", effect: "none" }, "one store, two clients");
  const second = made(copy, new copy.FolderStore(path));
  await assert.rejects(second.openSession(WANTED, { intent: "job-17" }), { kind: "busy", effect: "none", message: /one of this process/ });
  await first.close();
  assert.match((await second.openSession(WANTED, { intent: "job-17" })).session_id, /^ses_/);
  await second.close();
  assert.equal((await service.state()).charges.length, 1);
});
