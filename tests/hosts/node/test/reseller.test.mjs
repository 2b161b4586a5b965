// The reseller API over real HTTP: people, products, orders, money, lists.
import assert from "node:assert/strict";
import { get } from "node:http";
import { test } from "node:test";

import { ProxySettings, ResellerClient, Secret, isShared, meta, needsProjectId, parseIpRange } from "hopline";

import { ORDER, sandbox, shop } from "./lib/sandbox.mjs";

test("a static order is placed once, watched, used, renewed and cancelled", async (t) => {
  const { service, reseller, wanted } = await shop(t, "--provisioning-ms", "300");
  const events = reseller.events();
  const placed = await reseller.placeOrder({ ...wanted, ipCount: 2 }, { intent: "job-17" });
  assert.deepEqual([placed.phase, placed.order.orderNo, placed.order.status], ["ready", placed.order_no, "active"]);
  const [{ instances }] = placed.order.items;
  const [{ ip, http_port, username, password, exit_ip }] = instances;
  const { token } = new ProxySettings({ host: ip, port: http_port, protocol: "http", username, password }).undici();
  const visit = (resolve) => get({ host: ip, port: http_port, path: service.target_url, headers: { "proxy-authorization": token } }, resolve);
  const [page] = await (await new Promise(visit)).toArray();
  assert.equal(JSON.parse(page).address, exit_ip);

  assert.deepEqual(await reseller.placeOrder({ ...wanted, ipCount: 2 }, { intent: "job-17" }), placed, "the same intent is the same order");
  assert.equal((await reseller.waitOrder(placed.order_no)).phase, "ready");
  const renewed = await reseller.renewStaticOrder({ orderNo: placed.order_no, instances: [instances[0].instance_id], duration: 1, unit: "month", cycleTimes: 1 });
  assert.equal(renewed.renewed.length, 1);
  assert.equal((await reseller.cancelStaticOrder({ order_no: placed.order_no })).status, "cancelled");
  const over = await reseller.waitOrder(placed.order_no, { ends: ["cancelled"] });
  assert.deepEqual([over.phase, over.order.status], ["ended", "cancelled"]);
  const told = [];
  for await (const { event, order_no, status } of events) if (event.startsWith("order") && told.push([event, order_no, status]) === 3) break;
  assert.deepEqual(told.slice(0, 2), [["ordered", placed.order_no, undefined], ["order_status", placed.order_no, "active"]]);
  const { static_orders, entries } = await service.books();
  assert.deepEqual(static_orders.filter(({ user_id }) => user_id === wanted.userId).map(({ order_no, status }) => [order_no, status]), [[placed.order_no, "cancelled"]]);
  assert.deepEqual(entries.filter(({ order_no }) => order_no === placed.order_no).map(({ type }) => type), ["purchase", "renewal"]);
});

test("an order that fails goes on being waited for, unless its status was said to end it", async (t) => {
  const { service, reseller, wanted } = await shop(t, "--provisioning-ms", "100");
  await service.control("order", { fail_next: 2 });
  const failed = await reseller.placeOrder(wanted, { ends: ["failed"] });
  assert.deepEqual([failed.phase, failed.order.status], ["ended", "failed"]);
  const odd = await reseller.placeOrder(wanted, { deadlineMs: 1500 });
  assert.deepEqual([odd.phase, odd.order.status], ["unknown", "failed"]);
  await assert.rejects(reseller.waitOrder(""), { kind: "invalid", field: "order_no" });
  await assert.rejects(reseller.placeOrder({ ...wanted, unit: "week" }), { kind: "invalid", field: "unit" });
  await assert.rejects(reseller.placeOrder({ ...wanted, orderType: "dynamic_proxy" }), { kind: "invalid", field: "orderType" });
});

test("sub-users are made, found, changed, funded, disabled and deleted", async (t) => {
  const service = await sandbox(t);
  const reseller = service.reseller();
  const bob = await reseller.createUser({ username: "bob", password: "secret-1", phone: "13800138000", remark: "a note" });
  assert.deepEqual([bob.username, bob.status, bob.balance, bob.agent_id > 0], ["bob", "active", 0, true]);
  const id = bob.id;
  await reseller.adjustSubUserBalance({ user_id: id, amount: "12.50", remark: "a start" });
  await reseller.editSubUserAccount({ user_id: id, username: "bob_2" });
  await reseller.setSubUserStatus({ user_id: id, status: "disabled" });
  const { items } = await reseller.listSubUsers({ search: "bob" });
  assert.deepEqual(items.map(({ id, username, status, balance }) => [id, username, status, balance]), [[id, "bob_2", "disabled", 12.5]]);
  await reseller.deleteSubUser({ user_id: id });
  assert.deepEqual((await reseller.listSubUsers({})).items, []);
  const [deleted] = (await reseller.listSubUsers({ includeDeleted: true })).items;
  assert.equal(deleted.status, "deleted");
  for (const [wrong, field] of [[{ username: "ab", password: "secret-1" }, "username"], [{ username: "abc", password: "12345" }, "password"], [{ username: "abc", password: "secret-1", phone: "1" }, "phone"]]) {
    await assert.rejects(reseller.createUser(wrong), { kind: "invalid", effect: "none", field });
  }
  await assert.rejects(reseller.editSubUserAccount({ user_id: id }), { kind: "invalid" });
  const taken = await reseller.createUser({ username: "bob_2", password: "secret-1" }).catch((error) => error);
  assert.deepEqual([taken.kind, taken.effect, taken.code], ["refused", "none", "422"]);
  const { users, entries } = await service.books();
  assert.deepEqual([users.length, entries.map(({ type, amount }) => [type, Number(amount)])], [1, [["adjustment", 12.5]]]);
});

test("products say what an order of them needs, in whatever spelling", async (t) => {
  const service = await sandbox(t);
  const reseller = service.reseller();
  const find = async (productNo) => (await reseller.queryProducts({ proxyType: [103, 104], productNo })).items[0];
  for (const spelling of [{}, { product_type: "word", list: "items" }, { list: "list" }]) {
    await service.control("spelling", spelling);
    const [shared, own] = [await find("static-shared-us"), await find("static-us")];
    assert.deepEqual([isShared(shared), needsProjectId(shared), isShared(own), needsProjectId(own)], [true, true, false, false], JSON.stringify(spelling));
    assert.deepEqual([own.unit, own.stock > 0, own.productId], ["month", true, "static-us"]);
    assert.ok(shared.projectList.length > 0);
  }
  await service.control("spelling", {});
  const { items } = await reseller.listIpRanges({ productNo: "static-us" });
  const ranges = items.flatMap(({ ipRanges }) => ipRanges).map(({ ipRange }) => parseIpRange(ipRange));
  assert.ok(ranges.length > 0 && ranges.every(({ text, first, last }) => text && first && last));
  assert.deepEqual([parseIpRange("192.0.2.0/30"), parseIpRange("anywhere")], [{ text: "192.0.2.0/30", first: "192.0.2.0", last: "192.0.2.3" }, { text: "anywhere" }]);
  for (const wrong of [undefined, null, 7, "x", []]) assert.throws(() => isShared(wrong), { kind: "invalid", effect: "none" });
  assert.throws(() => parseIpRange(7), { kind: "invalid", field: "text" });
  const { id } = await reseller.createUser({ username: "ann", password: "secret-1", balance: 50 });
  const far = await reseller.placeOrder({ ...ORDER, userId: id, countryCode: "DE" }).catch((error) => error);
  assert.deepEqual([far.kind, far.effect, far.code], ["refused", "none", "location_not_supported_for_product"], far.stack);
  assert.match(JSON.stringify(far.details), /US/);
});

test("traffic is ordered, found, extracted and read", async (t) => {
  const service = await sandbox(t);
  const reseller = service.reseller();
  const { orderNo, id } = await reseller.createDynamicOrder({ poolId: "dynamic-us", trafficAmount: "1.5", remark: "job-17" });
  assert.equal((await reseller.findDynamicOrder({ order_no: orderNo })).id, id);
  assert.equal((await reseller.getDynamicOrder({ order_id: String(id) })).orderNo, orderNo);
  const { items } = await reseller.extractDynamicProxies({ productNo: "dynamic-us", proxyType: 104 });
  const [{ username, password }] = items;
  assert.ok(username instanceof Secret && password instanceof Secret && !JSON.stringify(items).includes(password.reveal()));
  const own = (await reseller.login({ username: service.username, password: service.password })).user;
  assert.deepEqual([own.username, (await reseller.getRemainingFlow({ user_id: own.id, product_no: "dynamic-us" })).remaining_gb], [service.username, 1.5]);
  assert.match(meta(await reseller.getProductsFlow({ user_id: own.id })).raw, /dynamic-us/);
});

test("a top-up in USDT is ordered, watched until the transfer is found, and another one cancelled", async (t) => {
  const service = await sandbox(t);
  const reseller = service.reseller();
  assert.match(JSON.stringify(await reseller.getUsdtWallet()), /TRC20/);
  const { order_no } = await reseller.createUsdtOrder({ parameters: { amount: 20 } });
  const watching = reseller.checkUsdtOrder({ parameters: { order_no } }, { until: { at: "/status", is: ["paid"] }, deadlineMs: 20_000 });
  await service.control("pay", { order_id: order_no });
  assert.deepEqual([meta(await watching).phase, (await watching).status], ["ready", "paid"]);
  const other = await reseller.createUsdtOrder({ parameters: { amount: 5 } });
  await reseller.cancelUsdtOrder({ parameters: { order_no: other.order_no } });
  assert.equal((await reseller.listUsdtOrders()).items.length, 2);
  const { usdt_orders } = await service.books();
  assert.deepEqual(usdt_orders.map(({ status }) => status), ["paid", "cancelled"]);
  for (const read of ["getDashboard", "getCurrentBalance", "listAgentTransactions", "getStaticOrderStatistics"]) assert.ok(meta(await reseller[read]()).raw.length > 2, read);
});

test("lists are walked item by item and page by page, and gone on with in another client", async (t) => {
  const service = await sandbox(t);
  const [one, two] = [service.reseller(), service.reseller()];
  const names = ["ann1", "ann2", "ann3", "ann4", "ann5", "ann6", "ann7"];
  for (const username of names) await one.createUser({ username, password: "secret-1" });
  const walked = async (walk, most = Infinity) => {
    const found = [];
    for await (const { username } of walk) if (found.push(username) >= most) break;
    return found;
  };
  for (const pageSize of [2, 3, 7, 100, undefined]) {
    const walk = one.walkSubUsers({ pageSize });
    assert.deepEqual([(await walked(walk)).sort(), walk.end], [names, "short_page"]);
  }
  const all = await walked(one.walkSubUsers({ pageSize: 3 }));
  const left = one.walkSubUsers({ pageSize: 3 });
  assert.deepEqual(await walked(left, 3), all.slice(0, 3));
  assert.deepEqual(await walked(two.walkSubUsers({ pageSize: 3 }, { position: left.position })), all.slice(3));
  const pages = [];
  for await (const { items } of one.walkSubUsers({ pageSize: 3 }).pages()) pages.push(items.length);
  assert.deepEqual(pages, [3, 3, 1]);
  const { id } = (await one.listSubUsers({ search: "ann1" })).items[0];
  for (let n = 0; n < 3; n += 1) await one.createDynamicOrder({ poolId: "dynamic-us", trafficAmount: 1 });
  await one.adjustSubUserBalance({ user_id: id, amount: 20, remark: "for an order" });
  await one.placeOrder({ ...ORDER, userId: id });
  const count = async (walk) => {
    let items = 0;
    for await (const item of walk) items += item ? 1 : 0;
    return items;
  };
  assert.deepEqual([await count(one.walkDynamicOrders({ page_size: 2 })), await count(one.walkStaticOrders({ user_id: id })), await count(one.walkConsumption({ page_size: 1 }))], [3, 1, 4]);
});

test("a reseller's options come from the environment, and those of the other API are refused", async (t) => {
  const service = await sandbox(t);
  const { HOPLINE_BACKEND_URL, HOPLINE_USERNAME, HOPLINE_PASSWORD } = process.env;
  Object.assign(process.env, { HOPLINE_BACKEND_URL: service.backend_url, HOPLINE_USERNAME: service.username, HOPLINE_PASSWORD: service.password });
  const reseller = new ResellerClient();
  const borrowed = new ResellerClient({ token: "none-of-its-own" });
  for (const [name, value] of Object.entries({ HOPLINE_BACKEND_URL, HOPLINE_USERNAME, HOPLINE_PASSWORD })) value === undefined ? delete process.env[name] : (process.env[name] = value);
  // A token that was given is never renewed as somebody else.
  await assert.rejects(borrowed.getCurrentBalance(), { kind: "refused", advice: "reauthenticate" });
  assert.equal((await service.state()).executions.login ?? 0, 0);
  await borrowed.close();
  assert.ok(meta(await reseller.getCurrentBalance()).raw.length > 2);
  await reseller.close();
  for (const [more, what] of [[{ apiKey: "k" }, /`apiKey`/], [{ dailyCapUsd: 1 }, /`dailyCapUsd`/], [{ api: "agent" }, /api/], [{ username: "u" }, /password/], [{ password: "p" }, /username/], [{ tokenCodes: "401" }, /`tokenCodes`/]]) {
    assert.throws(() => new ResellerClient({ baseUrl: service.backend_url, ...more }), (error) => error.kind === "invalid" && what.test(error.message));
  }
  assert.throws(() => service.agent({ username: "u", password: "p" }), { kind: "invalid", field: "username" });
  assert.equal(await service.reseller().request("GET", "/dynamic", { query: { page: "1" } }).then(({ items }) => items.length), 0);
});
