// Mistakes of callers: one clear error each, nothing sent, nothing lost.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { AgentClient, FolderStore, HoplineError, ResellerClient, cheapest } from "hopline";

import { OwnStore } from "./lib/own-store.mjs";
import { WANTED, folder, program, sandbox } from "./lib/sandbox.mjs";

/** The error, which must be one of ours, without a word of how this is built. */
function clear(error, kind, what) {
  assert.ok(error instanceof HoplineError, error?.stack);
  assert.equal(error.kind, kind, error.message);
  assert.match(error.message, what);
  assert.doesNotMatch(error.message, /wasm|panick|unreachable|undefined|\[object/, error.message);
  assert.equal(error.effect, "none");
}

/** The name of a record in errors and lists. */
const RECORD = `${"5e".repeat(16)}.i${"0".repeat(32)}.${"a".repeat(16)}`;

test("a client with wrong options is refused, and no option is repeated", () => {
  const cases = [
    [undefined, /base URL/], [null, /object/], [7, /object/], [{ baseUrl: "ftp://x" }, /http/], [{ baseUrl: 7 }, /`baseUrl`/],
    [{ baseUrl: "http://api.example/v1" }, /https|http/], [{ baseUrl: "https://x/v1", apiKey: 7 }, /`apiKey`/],
    [{ baseUrl: "https://x/v1", apikey: "canary" }, /unknown field `apikey`/], [{ baseUrl: "https://x/v1", apiKey: () => 1 }, /apiKey/],
    [{ baseUrl: "https://x/v1", apiKey: "a b" }, /`apiKey`/], [{ baseUrl: "https://x/v1", fetch: "canary" }, /fetch/],
    [{ baseUrl: "https://x/v1", store: {} }, /store/], [{ baseUrl: "https://x/v1", store: null }, /store/],
    [{ baseUrl: "https://x/v1", retry: { attempts: 0 } }, /attempts/], [{ baseUrl: "https://x/v1", retry: { attempt: 1 } }, /unknown field `retry.attempt`/], [{ baseUrl: "https://x/v1", retry: { windowMss: 1 } }, /unknown field `retry.windowMss`/],
    [{ baseUrl: "https://x/v1", daily_cap_usd: 1 }, /`daily_cap_usd`.*`dailyCapUsd`/], [{ baseUrl: "https://x/v1", retry: { window_ms: 1 } }, /`window_ms`.*`windowMs`/],
    [{ baseUrl: "https://x/v1", maxBody: -1 }, /`maxBody`/], [{ baseUrl: "https://x/v1", maxBody: 10n }, /bigint/],
    [{ baseUrl: "https://x/v1", dailyCapUsd: Number("1,00") }, /`dailyCapUsd` must be a finite number/],
    [{ baseUrl: "https://x/v1", retry: { timeoutMs: Infinity } }, /`timeoutMs` must be a finite number/],
  ];
  for (const [options, what] of cases) {
    try {
      new AgentClient(options);
      assert.fail(`${JSON.stringify(String(options))} was to be refused`);
    } catch (error) {
      clear(error, "invalid", what);
      assert.ok(!error.message.includes("canary"));
    }
  }
});

test("an error names options as they are spelled here, and only those", () => {
  const told = (options) => {
    try {
      new AgentClient({ baseUrl: "https://x/v1", ...options });
    } catch ({ field, message, what }) {
      return [field, message, what];
    }
  };
  const [field, message, what] = told({ retry: { windowMs: 0 } });
  assert.deepEqual([field, /`windowMs`/.test(message), /`windowMs`/.test(what)], ["windowMs", true, true], message);
  for (const text of told({ maxBodies: 7 }).slice(1)) {
    assert.match(text, /unknown field `maxBodies`/);
    assert.doesNotMatch(text, /_|expected|column|`api`/);
  }
  assert.match(told({ baseUrl: undefined })[1], /`baseUrl`.*HOPLINE_BASE_URL/);
  const hints = {
    apikey: /did you mean `apiKey`\?/, baseURL: /did you mean `baseUrl`\?/, dailyCapUSD: /did you mean `dailyCapUsd`\?/, acount: /did you mean `account`\?/, maxPrice: /did you mean `maxUnitPrice`\?/,
    timeoutMs: /of a client it is `retry\.timeoutMs`/, maxRetries: /of a client it is `retry\.attempts`/, timeout: /of a client it is `retry\.timeoutMs`/,
  };
  for (const [name, hint] of Object.entries(hints)) {
    const [, message, what] = told({ [name]: 7 });
    assert.match(message, hint);
    assert.match(what, hint);
    assert.match(message, /; nothing was changed; change the options$/);
  }
  assert.doesNotMatch(told({ colour: 7 })[1], /did you mean|of a client/);
});

test("space around what the environment says is nothing, and an error names its variable", async (t) => {
  const before = { ...process.env };
  const reset = () => {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  };
  t.after(reset);
  const set = (more) => Object.assign(process.env, { HOPLINE_API_KEY: "canary-key", HOPLINE_BASE_URL: "https://api.example/v1", HOPLINE_BACKEND_URL: "https://api.example/api", HOPLINE_USERNAME: "ann", HOPLINE_PASSWORD: " canary " }, more);
  for (const more of [{ HOPLINE_API_KEY: " canary-key\n" }, { HOPLINE_BASE_URL: "https://api.example/v1 \n" }]) {
    set(more);
    const seen = [];
    const agent = new AgentClient({ fetch: async (url, { headers }) => (seen.push([url, new Headers(headers).get("x-api-key")]), Response.json({ success: true, data: { balance: 1 } })) });
    await agent.getBalance();
    await agent.close();
    assert.deepEqual(seen, [["https://api.example/v1/billing/balance", "canary-key"]]);
  }
  set({ HOPLINE_PASSWORD: " canary \r\n" });
  const logins = [];
  const reseller = new ResellerClient({ fetch: async (_, { body }) => (body && logins.push(JSON.parse(new TextDecoder().decode(body))), Promise.reject(new Error("gone"))) });
  await reseller.queryProducts({}, { attempts: 1 }).catch(() => {});
  await reseller.close();
  assert.equal(logins[0].password, " canary ");
  for (const [name, value] of [["HOPLINE_BASE_URL", "api.example/v1"], ["HOPLINE_API_KEY", "canary\nkey"], ["HOPLINE_BASE_URL", ""], ["HOPLINE_API_KEY", " \n"], ["HOPLINE_API_KEY", ""]]) {
    set({ [name]: value });
    assert.throws(() => new AgentClient(), (error) => (clear(error, "invalid", new RegExp(name)), !error.message.includes("canary")));
    // A given option is not the variable's.
    if (value.trim()) assert.throws(() => new AgentClient({ baseUrl: "x", apiKey: "canary\nkey" }), ({ message }) => !message.includes("HOPLINE"));
  }
  for (const name of ["HOPLINE_USERNAME", "HOPLINE_PASSWORD", "HOPLINE_BACKEND_URL"]) {
    set({ [name]: "\n" });
    assert.throws(() => new ResellerClient(), (error) => (clear(error, "invalid", new RegExp(name)), true));
  }
});

test("a call with wrong parameters or options is refused, and nothing is sent", async (t) => {
  const service = await sandbox(t);
  let sent = 0;
  const agent = service.agent({ fetch: (...all) => ((sent += 1), fetch(...all)) });
  const loop = {};
  loop.loop = loop;
  const cases = [
    [undefined, /session_type/], [null, /object/], ["text", /object/], [[], /object/], [{ ...WANTED, quantity: -1 }, /quantity/],
    [{ ...WANTED, quantity: NaN }, /quantity/], [{ ...WANTED, quantity: {} }, /quantity/], [{ ...WANTED, quantity: 10n }, /quantity/],
    [{ ...WANTED, session_type: "other" }, /session_type/], [{ ...WANTED, colour: 1 }, /colour/], [{ ...WANTED, product_no: () => 1 }, /product_no/], [loop, /JSON/],
  ];
  for (const [params, what] of cases) clear(await agent.createSession(params).catch((error) => error), "invalid", what);
  const options = [
    [null, /options/], [7, /options/], [{ attempt: 1 }, /unknown field `attempt`/], [{ attempts: "1" }, /`attempts`/], [{ intent: "" }, /intent/],
    [{ intent: 7 }, /`intent`/], [{ idempotencyKey: "ä" }, /`idempotencyKey`/], [{ headers: { host: "x" } }, /headers/], [{ headers: { a: "b\nc" } }, /headers/], [{ timeoutMs: -1 }, /`timeoutMs`/], [{ idempotency_key: "k" }, /`idempotency_key`.*`idempotencyKey`/], [{ signal: 7 }, /signal/],
    [{ maxUnitPrice: Number("3,50") }, /`maxUnitPrice` must be a finite number/], [{ deadlineMs: -Infinity }, /`deadlineMs` must be a finite number/],
  ];
  for (const [given, what] of options) clear(await agent.createSession(WANTED, given).catch((error) => error), "invalid", what);
  clear(await agent.updateBudget({ daily_limit_usd: NaN }).catch((error) => error), "invalid", /`daily_limit_usd` must be a finite number/);
  const lost = 738529527931269400;
  for (const [call, what] of [
    [() => agent.reportSessionEvent({ session_id: "s", event: { bytes: lost } }), /`bytes` is a whole number beyond 2\^53/],
    [() => agent.reportSessionEvent({ session_id: "s", event: { seen: [{ at: [lost] }] } }), /`parameters` is a whole number beyond 2\^53/],
    [() => agent.request({ method: "POST", path: "/x", body: { a: [{ order_id: -lost }] }, safety: "safe" }), /`order_id` is a whole number/],
    [() => agent.createSession({ ...WANTED, quantity: 1e21 }), /`quantity` is a whole number beyond/],
    [() => agent.createSession(WANTED, { deadlineMs: 2 ** 53 }), /`deadlineMs` is a whole number beyond/],
  ]) {
    clear(await call().catch((error) => error), "invalid", what);
  }
  clear(await agent.getSession({ session_id: ".." }).catch((error) => error), "invalid", /session_id/);
  clear(await agent.waitSession().catch((error) => error), "invalid", /session_id/);
  clear(await agent.observe("s", "nothing").catch((error) => error), "invalid", /seen/);
  clear(await agent.settle("r", "perhaps").catch((error) => error), "invalid", /settlement/);
  clear(await agent.resume("r").catch((error) => error), "misuse", /record/);
  clear(await agent.openSession(WANTED, null).catch((error) => error), "invalid", /options/);
  clear(await agent.resumeAll({ signal: "x" }).catch((error) => error), "invalid", /signal/);
  assert.throws(() => agent.events(null), { kind: "invalid" });
  clear(await agent.forget("r").catch((error) => error), "misuse", /record/);
  assert.equal(await agent.observe("s", "captcha"), undefined);
  assert.equal(sent, 0);
  assert.deepEqual(await agent.saved(), []);
});

test("a closed client refuses everything and may be closed again", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "60000");
  const agent = service.agent();
  const events = agent.events();
  const waiting = agent.openSession(WANTED, { intent: "job-17" }).catch((error) => error);
  for await (const { event } of events) if (event === "accepted") break;
  await Promise.all([agent.close(), agent.close()]);
  const ended = await waiting;
  assert.equal(ended.kind, "cancelled");
  assert.match(ended.session_id, /./, "what is bought is named");
  for (const call of [() => agent.getBalance(), () => agent.openSession(WANTED), () => agent.saved(), () => agent.resumeAll(), () => agent.observe("s", "captcha")]) {
    clear(await call().catch((error) => error), "misuse", /closed/);
  }
  assert.throws(() => agent.events(), { kind: "misuse", effect: "none", advice: "new_client", message: /^events: was called on a client that is closed/ });
});

test("a store that can't be opened or written sends nothing and says why; reads go on", async (t) => {
  const service = await sandbox(t);
  const blocked = join(folder(), "file");
  writeFileSync(blocked, "");
  const full = new OwnStore();
  full.put = async () => {
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC", syscall: "write" });
  };
  const stores = [[new FolderStore(blocked), /EEXIST|ENOTDIR/], [full, /no space left/]];
  // A folder that can't be made, for which Node's own way to make it never ends.
  if (process.platform === "linux") stores.push([new FolderStore("/proc/x/records"), /ENOENT/]);
  for (const [store, why] of stores) {
    const agent = service.agent({ store });
    const error = await agent.openSession(WANTED, { intent: "job-17" }).catch((error) => error);
    // An earlier start of the intent may have bought, unless its name was claimed.
    const said = store === full ? ["store", "none", "mend_store"] : ["store", "unknown", "resume"];
    assert.deepEqual([error.kind, error.effect, error.advice], said, error.stack);
    for (const { message } of [error, error.cause]) assert.match(message, why);
    const unnamed = await agent.createSession(WANTED).catch((error) => error);
    assert.deepEqual([unnamed.kind, unnamed.effect, unnamed.advice], ["store", "none", "mend_store"], unnamed.stack);
    assert.match(unnamed.message, /was not sent/);
    assert.equal(typeof (await agent.getBalance()).balance, "number");
    if (store === full) continue;
    // A store that was never read does not look like an empty one.
    // An operation to resume may have been done by the writer of its record.
    const asks = [[() => agent.saved(), "none"], [() => agent.resumeAll(), "none"], [() => agent.resume(RECORD), "unknown"], [() => agent.forget(RECORD), "none"]];
    for (const [ask, effect] of asks) {
      const unread = await ask().catch((error) => error);
      assert.deepEqual([unread.kind, unread.effect, unread.advice], ["store", effect, "mend_store"], unread.stack);
      assert.match(unread.cause.message, why);
    }
  }
  assert.equal((await service.state()).charges.length, 0);
  assert.throws(() => new FolderStore(7), { kind: "invalid" });
});

test("an error says which call it was, where, and why", async (t) => {
  const service = await sandbox(t);
  const { agent_url: baseUrl, backend_url } = service;
  const failed = (call) => call.then(() => assert.fail("was to fail"), (error) => error);
  const message = async (call) => (await failed(call)).message;
  const agent = service.agent();
  // The method that was called, and nothing that it is made of.
  for (const options of [{ attempts: "3" }, { intnet: "a" }, { maxUnitPrice: "cheap" }, { intent: "" }]) {
    const error = await failed(agent.openSession(WANTED, options));
    assert.match(error.message, /^openSession\b/);
    assert.match(error.operation, /^(open|create)_session$/);
  }
  assert.match(await message(agent.openSession({ ...WANTED, product_no: "p" }, { intent: "a" })), /^openSession `a`: there is no such product/);
  assert.match(await message(agent.waitSession("s")), /^waitSession: /);
  assert.match(await message(agent.getSession({ session_id: "s" })), /^getSession: /);
  assert.match(await message(agent.getSession("s")), /^getSession: `params` must be an object; nothing was changed; change the request$/);
  assert.match(await message(agent.openSession(WANTED, { attempts: "3" })), /`attempts` must be a whole number;/);
  for (const [params, options, said] of [
    [{ ...WANTED, session_type: "dynamik" }, {}, "`session_type` must be one of dynamic, static (did you mean `dynamic`?)"],
    [{ ...WANTED, sessionType: "dynamic" }, {}, "`sessionType` is not a field of `CreateSession` (did you mean `session_type`?)"],
    [{ ...WANTED, intent: "a" }, {}, "`intent` is an option: give it in the argument after"],
    [{ product: cheapest({ type: "dynamic" }) }, {}, "`product` is an option: give it in the argument after"],
    [{ session_type: "dynamic" }, { product_no: "p" }, "`options` has an unknown field `product_no`; parameters of the request are members of the argument before"],
    [WANTED, { max_unit_price: 4 }, "`options` has an unknown field `max_unit_price`; options are spelled like `maxUnitPrice`"],
    [WANTED, { ifEnded: "bye" }, "`ifEnded` must be one of error, buy"],
    [WANTED, { useWith: "undicii" }, "`useWith` must be one of `undici`, `playwright`, `curl`; did you mean `undici`?"],
    [WANTED, { maxUnitPrice: "4 USD" }, "`maxUnitPrice` must be a decimal number of at most 28 digits"],
    [{}, { product: "dynamic-world" }, "`product` must be a choice of a product, as `cheapest` makes it"],
    [{}, { product: { type: "dynamic" } }, "`options` has an unknown field `product.type`; `cheapest` makes a product"],
    [{}, { product: cheapest() }, "`product` must have the type `dynamic` or `static`"],
  ]) assert.ok((await message(agent.openSession(params, options))).startsWith(`openSession: ${said}; `), said);
  assert.match(await message(agent.getBalance({}, { until: { at: "/balance", is: 1 } })), /`until.is` does not take this (number|boolean);/);
  const { items: [product] } = await agent.listProducts();
  for (const call of [() => agent.quote(7, 1), () => agent.observe("s", true)]) assert.match(await message(call()), /^(quote|observe): `(product|seen)` does not take this (number|boolean);/);
  assert.match(await message(agent.quote(product, "much")), /`quantity` does not take this string;/);
  assert.throws(() => new AgentClient({ baseUrl, retry: { attempts: null } }), { message: /`retry.attempts` does not take null;/ });
  // The address that was wrong.
  const elsewhere = new AgentClient({ apiKey: "key", baseUrl: backend_url });
  assert.ok((await message(elsewhere.getBalance())).endsWith(`check the base URL, which is \`${backend_url}\``));
  assert.ok((await message(elsewhere.openSession(WANTED))).endsWith(`; the base URL is \`${backend_url}\``));
  // Why it could not be reached.
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  const nobody = new AgentClient({ apiKey: "key", baseUrl: `http://127.0.0.1:${port}/v1`, retry: { attempts: 1 } });
  assert.match(await message(nobody.getBalance()), new RegExp(`could not be reached: ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:${port};`));
  // The missing option.
  assert.match(await message(new AgentClient({ baseUrl }).getBalance()), /; this client has no key: give `apiKey`, or set HOPLINE_API_KEY$/);
  assert.doesNotMatch(await message(new AgentClient({ baseUrl, apiKey: "wrong" }).getBalance()), /has no key/);
  assert.match(await message(new ResellerClient({ baseUrl: backend_url }).queryProducts()), /; this client has no login: .*HOPLINE_USERNAME and HOPLINE_PASSWORD$/);
  // When it may be tried again.
  const body = JSON.stringify({ success: false, data: null, error: { code: "RATE_LIMIT_EXCEEDED", message: "slow" }, meta: { request_id: "r", timestamp: new Date().toISOString() } });
  const busy = async () => new Response(body, { status: 429, headers: { "content-type": "application/json", "retry-after": "30" } });
  const throttled = await failed(service.agent({ fetch: busy, retry: { attempts: 1 } }).getBalance());
  assert.equal(throttled.code, "RATE_LIMIT_EXCEEDED");
  assert.match(throttled.message, /in 30 s/);
});

test("what an error says of itself is all that a log needs, and can be handed on", async (t) => {
  const service = await sandbox(t);
  const error = await service.agent({ apiKey: "canary" }).getBalance().catch((error) => error);
  const told = structuredClone(error.toJSON());
  const { name, message, stack, kind, code, status, request_id } = error;
  for (const [member, value] of Object.entries({ name, message, stack, kind, code, status, request_id })) assert.ok(value && told[member] === value, member);
});

test("a store whose folder is gone sends nothing, and says so and what to do", async (t) => {
  const service = await sandbox(t);
  const path = join(folder(), "records");
  const agent = service.agent({ store: new FolderStore(path) });
  assert.deepEqual(await agent.saved(), []);
  rmSync(path, { recursive: true });
  const error = await agent.openSession(WANTED, { intent: "job-17" }).catch((error) => error);
  assert.deepEqual([error.kind, error.effect, error.advice], ["store", "unknown", "resume"], error.stack);
  assert.match(error.message, /sent nothing, and an earlier call may have done it: repair the store/);
  assert.equal((await service.state()).charges.length, 0);
});

test("a port that fetch blocks is sent nothing", async (t) => {
  const agent = new AgentClient({ apiKey: "key", baseUrl: "http://127.0.0.1:6667/v1" });
  t.after(() => agent.close());
  const error = await agent.createSession(WANTED, { attempts: 1 }).catch((error) => error);
  assert.deepEqual([error.kind, error.effect], ["unavailable", "none"], error.stack);
});

test("a store that could not be opened is opened by a later call", async (t) => {
  const service = await sandbox(t);
  const path = join(folder(), "records");
  const before = service.agent({ store: new FolderStore(path) });
  await before.openSession(WANTED, { intent: "job-17" });
  await before.close();
  const store = new FolderStore(path);
  const [claim, list] = ["claim", "list"].map((name) => store[name].bind(store));
  let fails = true;
  for (const [name, call] of Object.entries({ claim, list })) {
    store[name] = async (...given) => {
      if (fails) throw new Error("the volume is not mounted");
      return call(...given);
    };
  }
  const agent = service.agent({ store, dailyCapUsd: 50 });
  await assert.rejects(agent.saved(), { kind: "store" });
  await assert.rejects(agent.openSession(WANTED, { intent: "job-17" }), { kind: "store", effect: "unknown" });
  fails = false;
  assert.deepEqual((await agent.saved()).map(({ intent }) => intent), ["job-17"]);
  await agent.openSession(WANTED, { intent: "job-17" });
  assert.equal((await service.state()).charges.length, 1);
});

test("the cause of a store error is that of its own record", async (t) => {
  const service = await sandbox(t);
  const store = new OwnStore();
  let trouble = "yesterday";
  const named = (name) => Object.assign(new Error("postgres://canary@host"), { name });
  store.put = async () => {
    throw named(trouble);
  };
  const agent = service.agent({ store });
  const failed = async () => (await agent.createSession(WANTED).catch((error) => error)).cause.name;
  assert.equal(await failed(), "yesterday");
  trouble = "today";
  assert.equal(await failed(), "today");
  let answer;
  const mixed = ["one", "two"].map((name) => ({ name, failing: new Promise((_, reject) => (answer = { ...answer, [name]: () => reject(named(name)) })) }));
  store.put = () => mixed.shift().failing;
  const both = [agent.createSession(WANTED), agent.createSession(WANTED)].map((call) => call.catch((error) => error.cause.name));
  while (mixed.length > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  answer.two();
  answer.one();
  assert.deepEqual(await Promise.all(both), ["one", "two"]);
});

test("what a database's own error says is told without its login, with its place, of each call of a store and of what vouches for it", async (t) => {
  const service = await sandbox(t);
  class DatabaseError extends Error {
    name = "DatabaseError";
    query = "canary";
    constructor() {
      super("postgres://me:canary@host is gone", { cause: new Error("canary") });
    }
  }
  const thrown = async () => Promise.reject(new DatabaseError());
  for (const method of ["claim", "put", "spend", "vouches"]) {
    const agent = service.agent({ dailyCapUsd: 10, store: Object.assign(new OwnStore(), { [method]: thrown }) });
    const error = await agent.openSession(WANTED, { intent: "job-17", attempts: 1 }).catch((error) => error);
    // Before the name was claimed nobody knows what an earlier call has done.
    assert.equal(error.effect, method === "claim" ? "unknown" : "none", error.stack);
    const told = inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error);
    assert.match(told, /DatabaseError: postgres:\/\/\[redacted\]host is gone \(input\.test\.mjs:\d+\)/);
    assert.doesNotMatch(told, /canary/, method);
  }
});

test("words that hold a secret are told without it, whatever throws them and however they spell it", async (t) => {
  const thrown = {
    "password authentication failed for user=app password=canary": /password=\[redacted\]/,
    "redis: WRONGPASS rediss://:canary@cache.example:6379/0": /\[redacted\]cache\.example/,
    'config {"apiKey":"canary","host":"db"}': /"host":"db"/,
    "Authorization: Bearer canary.canary": /Authorization: \[redacted\]/,
    "x-api-key: canary-key was refused by net access to unix:/srv/records": /refused by net access/,
    "sent canary-key": /sent \[redacted\]/,
    "sent canary-ke… and then -key": /sent \[redacted\]… and then -key/,
  };
  for (const [words, what] of Object.entries(thrown)) {
    const throws = async () => Promise.reject(Object.assign(new TypeError(words), { code: "EOWN" }));
    const ways = [{ fetch: throws }, ...(words.includes("canary-k") ? [] : [{ store: Object.assign(new OwnStore(), { put: throws }) }])];
    for (const way of ways) {
      const agent = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", ...way });
      t.after(() => agent.close());
      const error = await agent.createSession(WANTED, { attempts: 1 }).catch((error) => error);
      const told = inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error);
      assert.match(error.message + error.cause.message, what);
      assert.match(error.cause.message, /EOWN: .*\(input\.test\.mjs:\d+\)/);
      assert.doesNotMatch(told, /canary/);
    }
  }
});

test("an error of the system carries nothing along that a library put beside it", async (t) => {
  const service = await sandbox(t);
  const thrown = Object.assign(new Error("connect ECONNREFUSED redis://:canary@127.0.0.1:1"), { code: "ECONNREFUSED", syscall: "connect", config: { headers: { authorization: "canary" } } });
  const agent = service.agent({ store: Object.assign(new OwnStore(), { put: async () => Promise.reject(thrown) }) });
  const error = await agent.createSession(WANTED).catch((error) => error);
  assert.deepEqual([error.cause.code, error.cause.syscall], ["ECONNREFUSED", "connect"]);
  assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error), /canary/);
});

test("an error with ever so many words is told at once", async (t) => {
  for (const words of ["x".repeat(200_000), "/".repeat(200_000), "a-".repeat(100_000), "//a:".repeat(50_000), `${"password=".repeat(20_000)}`]) {
    const agent = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", fetch: async () => Promise.reject(new Error(words)) });
    t.after(() => agent.close());
    const before = process.cpuUsage().user;
    const error = await agent.getBalance({}, { attempts: 1 }).catch((error) => error);
    const took = (process.cpuUsage().user - before) / 1000;
    assert.ok(error.cause.message.length < 500);
    // By expressions that look at each letter for each letter before it: some minutes.
    assert.ok(took < 3000, `${words.slice(0, 9)}…: ${took} ms of work`);
  }
});

test("a log that can't be told anything is refused", () => {
  for (const log of [true, console.log, "debug", {}, null, 7]) {
    assert.throws(() => new AgentClient({ baseUrl: "https://x/v1", log }), (error) => (clear(error, "invalid", /`log` must/), true));
  }
  for (const log of [console, { warn() {} }, Object.assign(() => {}, { info() {} })]) new AgentClient({ baseUrl: "https://x/v1", log }).close();
});

test("what breaks when it is looked at is a store error like any other", async (t) => {
  const service = await sandbox(t);
  const broken = () => assert.fail("it was looked at");
  const thrown = async () => Promise.reject(new Proxy(new Error("no"), { get: broken, getPrototypeOf: broken }));
  for (const method of ["claim", "put", "vouches"]) {
    const agent = service.agent({ store: Object.assign(new OwnStore(), { [method]: thrown }) });
    await assert.rejects(agent.openSession(WANTED, { intent: "job-17", attempts: 1 }), { name: "HoplineError", effect: method === "claim" ? "unknown" : "none" });
    await agent.close();
  }
});

test("a folder that can't be written, or goes away, is a store error, and nothing is sent", async (t) => {
  const service = await sandbox(t);
  const path = join(folder(), "records");
  mkdirSync(path);
  const agent = service.agent({ store: new FolderStore(path) });
  await agent.saved();
  const root = process.geteuid?.() === 0;
  const late = service.agent({ store: new FolderStore(path) });
  // The rights of root know no read-only folder.
  if (root) process.seteuid(65534);
  else chmodSync(path, 0o500);
  const refused = await late.openSession(WANTED).catch((error) => error);
  if (root) process.seteuid(0);
  else chmodSync(path, 0o700);
  // A store that could not be opened has surely done nothing.
  assert.deepEqual([refused.kind, refused.effect, refused.cause?.code], ["store", "none", "EACCES"], refused.stack);
  rmSync(path, { recursive: true });
  const gone = await agent.openSession(WANTED).catch((error) => error);
  assert.deepEqual([gone.kind, gone.cause?.code], ["store", "ENOENT"], gone.stack);
  assert.equal((await service.state()).charges.length, 0);
});

/** Values in place of a limit: from a file, a database, a form, a class. */
const NO_LIMITS = {
  null: null, NaN: NaN, infinite: Infinity, "a text": "cheap", "a text with a comma": "1,00", "an empty text": "", "an object": {}, "a list": [5], "a bigint": 5n,
  "an instance": new (class Money { #amount = 5; })(), "a boxed number": new Number(5), "a map": new Map([["usd", 5]]), "a date": new Date(0), true: true,
  "what JSON has no value for": { toJSON: () => undefined }, "what JSON makes null of": { toJSON: () => null },
};

/** The numbers among the options of an interface, and of those that it extends, as the package declares them. */
function numbers(name) {
  const types = readFileSync(join(dirname(createRequire(import.meta.url).resolve("hopline")), "hopline.d.mts"), "utf8");
  const [, above, body] = new RegExp(`^export interface ${name}(?: extends ([\\w, ]+))? \\{\n([^]*?)^\\}$`, "m").exec(types);
  const own = [...body.matchAll(/^  (\w+)\??: ([^;]*);$/gm)].filter(([, , type]) => /\bnumber\b/.test(type)).map(([, name]) => name);
  return [...new Set([...(above?.split(", ") ?? []).flatMap(numbers), ...own])];
}

test("a limit that is no limit is refused wherever it is given, and nothing is sent", async (t) => {
  const sent = [];
  const here = { baseUrl: "https://x/v1", apiKey: "canary-key", fetch: async (...given) => (sent.push(given), new Response("{}", { status: 500 })) };
  const agent = new AgentClient({ ...here, dailyCapUsd: 5 });
  const reseller = new ResellerClient({ baseUrl: "https://x", token: "t", fetch: here.fetch });
  t.after(() => Promise.all([agent.close(), reseller.close()]));
  const ends = async (what, work, given) => {
    const error = await Promise.resolve().then(work).then((value) => value?.close?.(), (error) => error);
    assert.equal(error?.kind, "invalid", `${what} as ${given}: ${error?.stack ?? "was taken"}`);
    clear(error, "invalid", /./);
  };
  const order = { poolId: "p", userId: 1, unitPrice: 0, totalAmount: 0, ipCount: 1, duration: 1, unit: "month", cycleTimes: 1 };
  const declared = Object.fromEntries(["AgentClientOptions", "ResellerClientOptions", "RetryOptions", "OpenOptions", "RenewOptions", "PlaceOptions", "ReadOptions", "WalkOptions", "PoolOptions", "AcquireOptions"].map((name) => [name, numbers(name)]));
  assert.deepEqual([declared.AgentClientOptions, declared.RenewOptions, declared.AcquireOptions], [["maxInFlight", "maxBody", "dailyCapUsd"], ["attempts", "windowMs", "timeoutMs", "expectedChargeUsd"], ["timeoutMs"]]);
  assert.ok(declared.PoolOptions.length > 12 && declared.RetryOptions.length === 7 && declared.OpenOptions.includes("maxUnitPrice"), JSON.stringify(declared));
  const acquiring = await agent.openPool("acquiring", { session_type: "dynamic", product_no: "p", size: 1 });
  for (const [given, value] of Object.entries(NO_LIMITS)) {
    const takers = {
      AgentClientOptions: (options) => new AgentClient({ ...here, ...options }),
      ResellerClientOptions: (options) => new ResellerClient({ baseUrl: "https://x", token: "t", fetch: here.fetch, ...options }),
      RetryOptions: (retry) => new AgentClient({ ...here, retry }),
      OpenOptions: (options) => agent.openSession(WANTED, options),
      RenewOptions: (options) => agent.renewSession({ session_id: "s", duration: 1 }, options),
      PlaceOptions: (options) => reseller.placeOrder(order, options),
      ReadOptions: (options) => agent.getBalance({}, options),
      WalkOptions: (options) => agent.walkProducts({}, options).pages().next(),
      PoolOptions: (options) => agent.openPool("crawl", { ...WANTED, quantity: undefined, size: 1, ...options }),
      AcquireOptions: (options) => acquiring.acquire(options),
    };
    for (const [type, take] of Object.entries(takers)) for (const name of declared[type]) await ends(`${name} of ${type}`, async () => take({ [name]: value }), given);
    if (given !== "an object") await ends("retry", () => new AgentClient({ ...here, retry: value }), given);
    if (value !== true) await ends("keep", () => agent.openSession(WANTED, { keep: value }), given);
    if (given !== "an object") for (const call of [() => agent.openSession(WANTED, value), () => agent.openPool("crawl", value)]) await ends("options", call, given);
    if (value !== true) await ends("early", () => agent.settle(RECORD, "not_happened", { early: value }), given);
  }
  class Wanted { session_type = "dynamic"; product_no = "p"; quantity = 1; }
  for (const params of [new Wanted(), new Map(Object.entries(WANTED)), new URLSearchParams(WANTED)]) await ends("parameters", () => agent.openSession(params), params.constructor.name);
  const pool = await agent.openPool("crawl", { session_type: "dynamic", product_no: "p", size: 1 });
  for (const call of [() => pool.close(null), () => pool.close({ graceMs: null }), () => pool.drain({ grace: 1 }), () => pool.waitReady(null), () => pool.waitReady(1, null), () => pool.status(null), () => pool.withLease({}), () => pool.acquire({ timeoutMs: null })]) {
    await ends(String(call), call, "given");
  }
  await ends("an item without a value", () => reseller.renewStaticOrder({ instances: [undefined] }), "undefined");
  assert.deepEqual(sent, []);
});

test("headers are sent however fetch takes them, and what is none of it is refused", async (t) => {
  const seen = [];
  const agent = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", fetch: async (_, { headers }) => (seen.push(new Headers(headers).get("x-tenant")), Response.json({ balance: 1 })) });
  t.after(() => agent.close());
  const pairs = [["x-tenant", "a-7"]];
  for (const headers of [new Headers(pairs), new Map(pairs), pairs, Object.fromEntries(pairs)]) await agent.getBalance({}, { headers }).catch(() => {});
  assert.deepEqual(seen, ["a-7", "a-7", "a-7", "a-7"]);
  const odd = [];
  const other = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", fetch: async (_, { headers }) => (odd.push(Object.fromEntries(headers.map(([name, value]) => [`${name}!`, value]))), Response.json({ balance: 1 })) });
  t.after(() => other.close());
  for (const headers of [new Map([["__proto__", "a-7"]]), [["__proto__", "a-7"]], JSON.parse('{"__proto__":"a-7"}')]) await other.getBalance({}, { headers }).catch(() => {});
  assert.deepEqual(odd.map((headers) => headers["__proto__!"]), ["a-7", "a-7", "a-7"]);
  for (const headers of [{ "x-tenant": "a", "X-Tenant": "b" }, ["x-tenant"], [["x-tenant", "a", "b"]], [...pairs, ["X-Tenant", "b"]], new FormData().constructor, new (class Tenant { id = "a"; })(), new Set(["x"]), null, "x-tenant: a"]) {
    clear(await agent.getBalance({}, { headers }).catch((error) => error), "invalid", /headers/);
  }
  assert.equal(seen.length, 4);
});

test("an answer is read whatever its length, beside a number that is told as text", async (t) => {
  const text = `${"a line\\n".repeat(3_000_000)}\\"738529527931269425\\\\`;
  const body = `{"success":true,"data":{"session_id":"s-1","status":"creating","order_id":738529527931269425,"log":"${text}","after":[-738529527931269425,"738529527931269425"]}}`;
  const agent = new AgentClient({ baseUrl: "https://x/v1", apiKey: "canary-key", maxBody: 64 * 1024 * 1024, fetch: async () => new Response(body, { status: 202, headers: { "content-type": "application/json" } }) });
  t.after(() => agent.close());
  const bought = await agent.createSession(WANTED);
  assert.deepEqual([bought.session_id, bought.order_id, bought.log === JSON.parse(`"${text}"`), bought.after], ["s-1", "738529527931269425", true, ["-738529527931269425", "738529527931269425"]]);
});

test("what a store answers to a call that has ended is kept nowhere", { timeout: 120_000 }, async () => {
  const { code, out, errors } = await program("late.mjs", { NODE_OPTIONS: "--expose-gc" }).ended;
  assert.equal(code, 0, errors);
  // The words of such an error alone are more than that.
  assert.ok(Number(out) < 300, `${out} bytes for each`);
});

test("a whole number beyond 2^53 is told as text, documented or not, and sent on as it was", async (t) => {
  const [lost, bodies] = ["738529527931269425", []];
  const list = `{"code":0,"message":"ok","data":{"total":1,"list":[{"orderNo":"o-1","order_id":${lost},"at":[-${lost}],"share":0.${lost},"small":9007199254740991,"text":"\\"${lost}: ${lost}"}]}}`;
  const reseller = new ResellerClient({
    baseUrl: "https://x",
    token: "canary-token",
    fetch: async (_, { method, body }) => (method === "POST" && bodies.push(new TextDecoder().decode(body)), new Response(list, { headers: { "content-type": "application/json" } })),
  });
  t.after(() => reseller.close());
  const { items: [order] } = await reseller.listStaticOrders({ page: 1, pageSize: 10 });
  assert.deepEqual([order.order_id, order.at, order.share, order.small, order.text], [lost, [`-${lost}`], Number(`0.${lost}`), Number.MAX_SAFE_INTEGER, `"${lost}: ${lost}`]);
  await reseller.renewStaticOrder({ order_id: order.order_id }).catch(() => {});
  assert.deepEqual(bodies.map((body) => JSON.parse(body).order_id), [lost]);
  clear(await reseller.renewStaticOrder({ order_id: Number(lost) }).catch((error) => error), "invalid", /`order_id`/);
  const agent = new AgentClient({ baseUrl: "https://x", apiKey: "canary-key" });
  t.after(() => agent.close());
  clear(await agent.settle(RECORD, "happened", { became: Number(lost) }).catch((error) => error), "invalid", /`became`/);
});
