// IndexedDBStore and what can go wrong with it: one clear error each, nothing sent, nothing lost.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { LAUNCH, account, open, stage } from "./lib/chromium.mjs";
import { policy, site } from "./lib/site.mjs";

/** The runner of Node's tests, for pages. */
const RUNNER = { "/runner/": fileURLToPath(new URL("../../node/test", import.meta.url)) };

test("the database does what every store must, whenever a client dies", { timeout: 170_000 }, async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service, { folders: RUNNER });
  const folder = join(process.env.HOPLINE_VECTORS, "../store");
  const files = readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => [name, JSON.parse(readFileSync(join(folder, name), "utf8"))]);
  const run = (files, diesAfter) => page.evaluate(async ([files, diesAfter]) => (await import("/keepers.mjs")).run(files, diesAfter), [files, diesAfter]);
  const { cases, failures, text } = await run(files, 5);
  console.log(text);
  assert.deepEqual(failures, []);
  assert.equal(cases, files.reduce((sum, [, file]) => sum + file.cases.length, 0), "none is left out");
  const dying = files.map(([name, file]) => [name, { cases: file.cases.filter(({ needs }) => needs?.includes("dies")) }]);
  for (const ms of [0, 1, 20]) assert.deepEqual((await run(dying, ms)).failures, [], `${ms}`);
});

/** The result of a purchase over a store, and whether reads go on. */
const refused = (page, name = "records") =>
  page.evaluate(async ([wanted, name]) => {
    const agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore(name) });
    const error = await agent.openSession(wanted, { intent: "job-17" }).then(() => ({}), (error) => error);
    const { balance } = await agent.getBalance();
    await agent.close();
    return { kind: error.kind, effect: error.effect, advice: error.advice, cause: error.cause?.message, inner: error.cause?.cause?.name, balance };
  }, [WANTED, name]);

function clear(told, what) {
  // An earlier call may have done it where what is under its name could not be asked for.
  const [effect, advice] = told.effect === "none" ? ["none", "mend_store"] : ["unknown", "resume"];
  assert.deepEqual([told.kind, told.effect, told.advice, told.balance], ["store", effect, advice, 100], told.cause);
  assert.match(told.cause, what);
  assert.match(told.cause, /^store: the database `\w+`: [a-z']/);
}

test("a store is named by a text, serves one client, and is the browser's", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  const told = await page.evaluate(async () => {
    const { AgentClient, FolderStore, IndexedDBStore } = hopline;
    const of = ({ name, kind, message }) => [name, kind, message];
    const made = (...all) => {
      try {
        return new IndexedDBStore(...all);
      } catch (error) {
        return of(error);
      }
    };
    const wrong = [made(), made(""), made(7)];
    const elsewhere = new AgentClient({ ...service, store: new FolderStore("records") });
    const folder = await elsewhere.createSession({ session_type: "dynamic", product_no: "dynamic-world" }).catch(of);
    await elsewhere.close();
    const store = new IndexedDBStore("records");
    const [first, second] = [1, 2].map(() => new AgentClient({ ...service, store }));
    await first.saved();
    const shared = await second.createSession({ session_type: "dynamic", product_no: "dynamic-world" }).catch((error) => [error.kind, error.message]);
    await Promise.all([first.close(), second.close()]);
    const third = new AgentClient({ ...service, store });
    const again = await third.saved();
    await third.close();
    return { wrong, folder, shared, again };
  });
  for (const error of told.wrong) assert.deepEqual(error, ["HoplineError", "invalid", "store: `name` must be the name of a database; nothing was changed; change the request"]);
  assert.deepEqual(told.folder.slice(0, 2), ["HoplineError", "store"]);
  assert.match(told.folder[2], /there are no folders here; use an IndexedDBStore/);
  assert.equal(told.shared[0], "misuse");
  assert.match(told.shared[1], /this store has a client already/);
  assert.deepEqual(told.again, []);
});

test("without a secure context the store says that it needs one", async (t) => {
  const service = await sandbox(t);
  const url = await site(t, { csp: policy(new URL(service.agent_url).origin) });
  const browser = await chromium.launch({ ...LAUNCH, args: [...LAUNCH.args, "--host-resolver-rules=MAP plain.example 127.0.0.1"] });
  t.after(() => browser.close());
  const page = await open(await browser.newContext(), url.replace("127.0.0.1", "plain.example") + "/page.html");
  await page.evaluate((client) => (globalThis.service = client), account(service));
  clear(await refused(page), /secure context.*https or from localhost/);
  // A client that keeps nothing works there, too.
  const bought = await page.evaluate((wanted) => new hopline.AgentClient(service).openSession(wanted, { intent: "job-18" }), WANTED);
  assert.equal(bought.phase, "ready");
});

test("a full disk, and a foreign, older or newer database are store errors", async (t) => {
  const service = await sandbox(t);
  const { page, context, url } = await stage(t, service);
  await page.evaluate(async () => {
    const made = (name, version) => new Promise((resolve) => (indexedDB.open(name, version).onsuccess = ({ target }) => (target.result.close(), resolve())));
    await made("foreign", 2);
    await made("older", 1);
    await made("newer", 3);
  });
  clear(await refused(page, "foreign"), /choose another name/);
  clear(await refused(page, "older"), /older version.*choose another name/);
  clear(await refused(page, "newer"), /newer version/);
  const devtools = await context.newCDPSession(page);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin: url, quotaSize: 1 });
  clear(await refused(page), /no more space/);
  await devtools.send("Storage.overrideQuotaForOrigin", { origin: url });
  assert.equal((await service.state()).charges.length, 0);
  const bought = await page.evaluate((wanted) => new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") }).openSession(wanted), WANTED);
  assert.equal(bought.phase, "ready");
});

test("a database whose connection the browser closes is opened again, and what it held is known to be lost where it is gone", async (t) => {
  const service = await sandbox(t);
  const { page, context, url } = await stage(t, service);
  const devtools = await context.newCDPSession(page);
  const removed = {
    "is deleted by another tab": () => page.evaluate(() => new Promise((resolve, reject) => Object.assign(indexedDB.deleteDatabase("records"), { onsuccess: () => resolve(), onerror: reject, onblocked: reject }))),
    "is cleared with the site's data": () => devtools.send("Storage.clearDataForOrigin", { origin: url, storageTypes: "indexeddb" }),
  };
  let charges = 0;
  for (const [how, remove] of Object.entries(removed)) {
    const begun = await page.evaluate(async (wanted) => {
      globalThis.lost = 0;
      globalThis.store = new hopline.IndexedDBStore("records");
      globalThis.agent = new hopline.AgentClient({ ...service, store });
      agent.onEvent(({ event }) => (lost += event === "claims_lost" ? 1 : 0));
      const { session_id } = await agent.openSession(wanted, { intent: "job-17" });
      return [session_id, await store.vouches(), lost];
    }, WANTED);
    assert.deepEqual(begun.slice(1), [true, 0], how);
    await remove();
    const after = await page.evaluate(async (wanted) => {
      // A claim that is vouched for is looked up, and the client hears that it owns nothing of it any more.
      const [stands, told] = [await store.vouches(), lost];
      const { session_id } = await agent.openSession(wanted, { intent: "job-18" });
      const kept = (await agent.saved()).map((entry) => entry.intent);
      const other = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
      const busy = await other.openSession(wanted, { intent: "job-18" }).then(() => "bought", (error) => error.kind);
      await Promise.all([other.close(), agent.close()]);
      return { session_id, stands, told, kept, busy };
    }, WANTED).catch((error) => assert.fail(`a database that ${how}: ${error.message}`));
    assert.match(after.session_id, /^ses_/);
    assert.deepEqual([after.stands, after.told > 0, after.kept, after.busy], [false, true, ["job-18"], "busy"], how);
    charges += 2;
    assert.equal((await service.state()).charges.length, charges);
    await page.evaluate(() => new Promise((resolve) => (indexedDB.deleteDatabase("records").onsuccess = () => resolve())));
  }
});

test("a connection that fails without a word is made anew, and one that can't be made is a store error of that call", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  const told = await page.evaluate(async (wanted) => {
    const agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
    const { session_id } = await agent.openSession(wanted, { intent: "job-17" });
    let broken = true;
    const { transaction } = IDBDatabase.prototype;
    // As Safari has it when the process that keeps its databases has ended: this connection is of no use, a new one is.
    const dead = new WeakSet();
    IDBDatabase.prototype.transaction = function (...given) {
      if (broken) dead.add(this), (broken = false);
      if (dead.has(this)) throw new DOMException("Connection to Indexed Database server lost. Refresh the page to try again", "UnknownError");
      return transaction.apply(this, given);
    };
    const again = (await agent.saved()).map((entry) => entry.intent);
    const open = indexedDB.open.bind(indexedDB);
    broken = true;
    IDBFactory.prototype.open = () => {
      throw new DOMException("no", "UnknownError");
    };
    const error = await agent.openSession(wanted, { intent: "job-18" }).then(() => ({}), (error) => error);
    delete IDBFactory.prototype.open;
    IDBFactory.prototype.open = (...given) => open(...given);
    const after = (await agent.openSession(wanted, { intent: "job-17" })).session_id;
    await agent.close();
    return { again, error: [error.kind, error.effect], same: after === session_id };
  }, WANTED);
  assert.deepEqual(told, { again: ["job-17"], error: ["store", "unknown"], same: true });
  assert.equal((await service.state()).charges.length, 1);
});

test("a database that another tab is in the way of is asked for once, however often it is needed, and is there once that tab is gone", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  const told = await page.evaluate(async (wanted) => {
    // A tab that does not heed that its database is to be deleted.
    const blocking = await new Promise((resolve) => (indexedDB.open("records").onsuccess = ({ target }) => resolve(target.result)));
    const deleted = new Promise((resolve) => (indexedDB.deleteDatabase("records").onsuccess = resolve));
    const open = indexedDB.open.bind(indexedDB);
    const [requests, closed] = [[], []];
    IDBFactory.prototype.open = (...given) => {
      const request = open(...given);
      requests.push(request);
      request.addEventListener("success", () => {
        const close = request.result.close.bind(request.result);
        request.result.close = () => (closed.push(request), close());
      });
      return request;
    };
    const patience = setTimeout;
    // Each call's ten seconds are over at once.
    globalThis.setTimeout = (work, ms, ...given) => patience(work, ms === 10_000 ? 1 : ms, ...given);
    const agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
    const refused = [];
    for (let n = 0; n < 5; n += 1) refused.push(await agent.openSession(wanted, { intent: "job-17" }).then(() => "bought", ({ kind, cause }) => [kind, cause.cause?.name]));
    const out = requests.length;
    globalThis.setTimeout = patience;
    const waiting = agent.openSession(wanted, { intent: "job-17" });
    blocking.close();
    await deleted;
    const { phase } = await waiting;
    const used = [requests.length, closed.length];
    await agent.close();
    return { refused, out, phase, used, after: closed.length };
  }, WANTED);
  assert.deepEqual(told, { refused: Array(5).fill(["store", "TimeoutError"]), out: 1, phase: "ready", used: [1, 0], after: 1 });
  assert.equal((await service.state()).charges.length, 1);
});

test("an intent that another key began buys nothing again, and goes on once the account is said to be the same", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  const told = await page.evaluate(async (wanted) => {
    const client = (more) => new hopline.AgentClient({ ...service, ...more, store: new hopline.IndexedDBStore("records") });
    // Sends with the key that the service knows, as if the client's own had been it before.
    const renewed = (url, init) => fetch(url, { ...init, headers: init.headers.map(([name, value]) => [name, value.replace("the-key-before", service.apiKey)]) });
    const buy = (agent) => agent.openSession(wanted, { intent: "job-17" }).then(({ session_id }) => session_id, ({ kind, effect, field }) => [kind, effect, field]);
    const [first, other] = [client({ apiKey: "the-key-before", fetch: renewed }), client()];
    const bought = await buy(first);
    const living = await buy(other);
    await first.close();
    const gone = await buy(other);
    await other.close();
    const same = client({ sameAccount: true });
    const again = await buy(same);
    await same.close();
    return { bought, living, gone, again };
  }, WANTED);
  assert.deepEqual(told.living, ["busy", "none", undefined]);
  assert.deepEqual(told.gone, ["invalid", "none", "intent"]);
  assert.equal(told.again, told.bought);
  assert.equal((await service.state()).charges.length, 1);
});

/** Buys in a page that goes on to live, and makes its last sign of life an old one. */
async function bought(page) {
  const session_id = await page.evaluate(async (wanted) => {
    globalThis.agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
    return (await agent.openSession(wanted, { intent: "job-17" })).session_id;
  }, WANTED);
  return session_id;
}

const growOld = (page) => page.evaluate(async () => {
  const { within } = await import("/keepers.mjs");
  await within("records", ["owners"], async (at, done) => {
    for (const owner of await done(at("owners").getAllKeys())) await done(at("owners").put({ seen: Date.now() - 61_000 }, owner));
  });
});

const ask = (page, intent = "job-17") => page.evaluate(async ([wanted, intent]) => {
  globalThis.agent ??= new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
  return agent.openSession(wanted, { intent }).then(({ session_id }) => session_id, ({ kind, effect }) => [kind, effect]);
}, [WANTED, intent]);

test("a page that stands still with its locks, as a frozen one, loses what it owns after 60 seconds, and hears of it when it goes on", async (t) => {
  const service = await sandbox(t);
  const { page, context, fresh } = await stage(t, service, { folders: RUNNER });
  const session_id = await bought(page);
  const other = await fresh();
  const devtools = await context.newCDPSession(page);
  // A browser freezes only what nobody sees, and here all is seen. The debugger stops a page in the same way: with all that it has.
  await devtools.send("Debugger.enable");
  await devtools.send("Debugger.pause");
  assert.deepEqual(await ask(other), ["busy", "none"], "it was alive a moment ago");
  await growOld(other);
  assert.equal(await ask(other), session_id);
  await devtools.send("Debugger.disable");
  // So long it stood still by its own clock, too.
  await page.evaluate(() => (performance.now = ((now) => () => now() + 61_000)(performance.now.bind(performance))));
  // Its next request finds out, whatever it is.
  await page.evaluate(() => agent.getBalance().catch(() => {}));
  assert.deepEqual(await ask(page), ["busy", "none"], "it is the other one's now");
  assert.match(await ask(page, "job-18"), /^ses_/);
  assert.equal((await service.state()).charges.length, 2);
});

test("a page that nobody sees, and whose timers are late, keeps what it owns", async (t) => {
  const service = await sandbox(t);
  const { page, fresh } = await stage(t, service, { folders: RUNNER });
  const session_id = await bought(page);
  const other = await fresh();
  await growOld(other);
  assert.deepEqual(await ask(other), ["busy", "none"], "it answers");
  assert.equal(await ask(page), session_id);
  assert.equal((await service.state()).charges.length, 1);
});

test("a page that goes back in the history finds its purchase, whoever went on with it", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "300");
  const browser = await chromium.launch({ ...LAUNCH, ignoreDefaultArgs: ["--disable-back-forward-cache"] });
  t.after(() => browser.close());
  const context = await browser.newContext();
  const url = await site(t, { csp: policy(new URL(service.agent_url).origin) });
  const page = await open(context, `${url}/page.html`);
  const buy = ([client, wanted]) => {
    globalThis.slept = true;
    globalThis.agent = new hopline.AgentClient({ ...client, store: new hopline.IndexedDBStore("records") });
    // The browser needs a moment to see that a page in the history is in the way.
    const open = (tries) =>
      agent.openSession(wanted, { intent: "job-17" }).then(({ session_id }) => session_id, ({ kind }) => (kind === "busy" && tries > 0 ? open(tries - 1) : kind));
    globalThis.opening = open(100);
    return undefined;
  };
  await page.evaluate(buy, [account(service), WANTED]);
  while ((await service.state()).charges.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await page.goto(`${url}/elsewhere.html`);
  const other = await open(context, `${url}/page.html`);
  await other.evaluate(buy, [account(service), WANTED]);
  const elsewhere = await other.evaluate(() => opening);
  assert.match(elsewhere, /^ses_/, "a page in the history holds no lock");
  await page.goBack();
  await page.waitForFunction(() => "hopline" in globalThis);
  const awake = await page.evaluate(() => globalThis.slept === true);
  const reasons = await page.evaluate(() => JSON.stringify(performance.getEntriesByType("navigation")[0].notRestoredReasons?.reasons));
  console.log(`history: the page ${awake ? "was kept" : "was made again"}${awake ? "" : `, because of ${reasons}`}`);
  assert.equal((await service.state()).charges.length, 1);
});
