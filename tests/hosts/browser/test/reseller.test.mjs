// The reseller API in a page: an order's life, the login, lists, doubts, and nothing secret in the console.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { build } from "vite";

import { ORDER, login, sandbox } from "../../node/test/lib/sandbox.mjs";
import { profile, stage } from "./lib/chromium.mjs";
import { PACKAGE } from "./lib/site.mjs";

/** A page with a reseller's login in `reseller`. */
async function counter(t, ...options) {
  const service = await sandbox(t, ...options);
  const staged = await stage(t, service);
  const fresh = async () => {
    const page = await staged.fresh();
    await page.evaluate((given) => Object.assign(globalThis, given), { account: login(service), order: ORDER });
    return page;
  };
  return { service, fresh, page: await fresh() };
}

test("an order is placed for a sub-user, watched, renewed and cancelled, and Chromium goes out through its proxy", async (t) => {
  const { service, page } = await counter(t, "--provisioning-ms", "300");
  const told = await page.evaluate(async () => {
    const reseller = new hopline.ResellerClient({ ...account, store: new hopline.IndexedDBStore("records") });
    const { id } = await reseller.createUser({ username: "ann", password: "secret-1" });
    await reseller.adjustSubUserBalance({ user_id: id, amount: "30", remark: "a start" });
    const { items } = await reseller.queryProducts({ standardCountryCode: "US" });
    const product = items.find((product) => product.stock > 0 && !hopline.needsProjectId(product));
    const wanted = { ...order, poolId: product.productId, userId: id };
    const [placed, same] = await Promise.all([1, 2].map(() => reseller.placeOrder(wanted, { intent: "job-17" })));
    const [{ instances }] = placed.order.items;
    const [{ ip, http_port, username, password, exit_ip }] = instances;
    const settings = new hopline.ProxySettings({ host: ip, port: http_port, protocol: "http", username, password });
    await reseller.renewStaticOrder({ orderNo: placed.order_no, duration: 1, unit: "month", cycleTimes: 1 });
    globalThis.client = reseller;
    const { server, username: name, password: word } = settings.playwright();
    return { order_no: placed.order_no, same: same.order_no, phase: placed.phase, exit_ip, proxy: { server, username: name, password: word } };
  });
  assert.deepEqual([told.phase, told.same], ["ready", told.order_no]);
  const context = await profile(t, { proxy: told.proxy });
  // By a name that only the proxy looks up: Chromium goes to loopback addresses by itself.
  const answer = await (await context.newPage()).goto(service.target_url.replace("127.0.0.1", "localhost"));
  assert.equal(JSON.parse(await answer.text()).address, told.exit_ip);
  const status = await page.evaluate(async (order_no) => {
    await client.cancelStaticOrder({ order_no });
    const { phase, order } = await client.waitOrder(order_no, { ends: ["cancelled"] });
    await client.close();
    return [phase, order.status];
  }, told.order_no);
  assert.deepEqual(status, ["ended", "cancelled"]);
  const { static_orders, entries } = await service.books();
  assert.equal(static_orders.filter(({ order_no }) => order_no === told.order_no).length, 1);
  assert.deepEqual(entries.map(({ type }) => type), ["adjustment", "purchase", "renewal"]);
  assert.deepEqual(page.told, []);
});

test("calls of a page log in once, lists are walked, and what needs the core waits for it or says so", async (t) => {
  const { page } = await counter(t);
  const told = await page.evaluate(async () => {
    const early = (() => {
      try {
        return hopline.parseIpRange("192.0.2.0/30");
      } catch ({ kind, message }) {
        return [kind, message];
      }
    })();
    let logins = 0;
    const reseller = new hopline.ResellerClient({ ...account, fetch: (url, init) => ((logins += url.endsWith("/auth/login")), fetch(url, init)) });
    const before = reseller.token;
    await Promise.all(Array.from({ length: 10 }, () => reseller.getDashboard()));
    const named = (before === undefined) && reseller.token.length > 10;
    for (const username of ["ann1", "ann2", "ann3"]) await reseller.createUser({ username, password: "secret-1" });
    const walk = reseller.walkSubUsers({ pageSize: 2 });
    const users = [];
    for await (const { username } of walk) users.push(username);
    const wrong = await reseller.createUser({ username: "a", password: "b" }).catch(({ kind, field }) => [kind, field]);
    const { first, last } = hopline.parseIpRange("192.0.2.0/30");
    const loose = new hopline.ResellerClient({ baseUrl: "/nowhere" });
    const refused = await loose.getDashboard({}, { attempts: 1 }).catch(({ kind, effect }) => [kind, effect]);
    await Promise.all([reseller.close(), loose.close()]);
    return { early, logins, named, users: users.sort(), end: walk.end, wrong, range: [first, last], refused };
  });
  assert.equal(told.early[0], "misuse");
  assert.match(told.early[1], /load\(\)/);
  assert.deepEqual([told.logins, told.named, told.users, told.end], [1, true, ["ann1", "ann2", "ann3"], "short_page"]);
  assert.deepEqual([told.wrong, told.range], [["invalid", "username"], ["192.0.2.0", "192.0.2.3"]]);
  assert.deepEqual(told.refused, ["refused", "none"]);
});

test("an order in doubt outlives its page, is looked up in another one and settled, and nothing secret is printed", async (t) => {
  const { service, fresh, page } = await counter(t);
  await service.fault({ kind: "html", status: 502, after: true }, "create_static_order");
  const doubt = await page.evaluate(async () => {
    const reseller = new hopline.ResellerClient({ ...account, store: new hopline.IndexedDBStore("records") });
    const ann = await reseller.createUser({ username: "ann", password: "canary-ann", email: "canary@example.com", balance: 30 });
    const error = await reseller.placeOrder({ ...order, userId: ann.id }, { intent: "job-17" }).catch((error) => error);
    console.log(reseller, ann, error, JSON.stringify([reseller, ann, error]), String(error), error.stack);
    return { kind: error.kind, effect: error.effect, record: error.record };
  });
  assert.deepEqual([doubt.kind, doubt.effect], ["in_doubt", "unknown"]);
  const texts = [...page.told];
  await page.close();
  const next = await fresh();
  const found = await next.evaluate(async (record) => {
    const reseller = new hopline.ResellerClient({ ...account, store: new hopline.IndexedDBStore("records") });
    const saved = (await reseller.saved()).map(({ record, holds }) => [record, holds]);
    const reconciled = await reseller.reconcile(record);
    const [{ item }] = reconciled.candidates;
    const { username, password } = item.instances[0];
    const settled = await reseller.settle(record, "happened", { became: item.orderNo });
    console.log(reconciled, item, item.instances[0], { ...item.instances[0] }, JSON.stringify(reconciled), JSON.stringify(structuredClone(item)));
    const token = reseller.token;
    await reseller.close();
    return { saved, candidates: reconciled.candidates.length, orderNo: item.orderNo, settled, secrets: [username.reveal(), password.reveal(), token] };
  }, doubt.record);
  assert.deepEqual([found.saved, found.candidates, found.settled], [[[doubt.record, "in_doubt_for_good"]], 1, true]);
  assert.ok((await service.books()).static_orders.some(({ order_no }) => order_no === found.orderNo));
  texts.push(...next.told);
  assert.ok(texts.length >= 2);
  for (const secret of [...found.secrets, "canary", service.password]) {
    assert.ok(secret.length > 3);
    assert.equal(texts.find((text) => text.includes(secret)), undefined, secret);
  }
});

test("a page that uses one of the clients carries nothing of the other", async (t) => {
  const place = join(dirname(PACKAGE), "..", "shaken");
  mkdirSync(place, { recursive: true });
  const root = mkdtempSync(join(place, "app-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(join(root, "index.html"), '<!doctype html><script type="module" src="./main.js"></script>');
  const bundle = async (client) => {
    writeFileSync(join(root, "main.js"), `import { ${client} } from "hopline";\nglobalThis.client = new ${client}();\n`);
    const { output } = await build({ root, logLevel: "silent", build: { write: false, modulePreload: false } });
    return output.filter(({ type }) => type === "chunk").map(({ code }) => code).join();
  };
  const [agent, reseller] = [await bundle("AgentClient"), await bundle("ResellerClient")];
  const has = (code) => ["openSession", "rotateSession", "placeOrder", "listIpRanges"].map((name) => code.includes(name));
  assert.deepEqual([has(agent), has(reseller)], [[true, true, false, false], [false, false, true, true]]);
});
