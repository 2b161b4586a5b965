// The limits of spending: a price, a cap of the day, a backend that is not ready; and what a purchase is to cost.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore, meta } from "hopline";

import { OwnStore } from "./lib/own-store.mjs";
import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

test("a price above the limit buys nothing, and one below it does", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const events = agent.events();
  const refused = await agent.openSession(WANTED, { maxUnitPrice: "3.99" }).catch((error) => error);
  assert.deepEqual([refused.kind, refused.effect, (await service.state()).charges.length], ["refused", "none", 0], refused.stack);
  assert.deepEqual([refused.isRefusedByUs, JSON.parse(JSON.stringify(refused)).refused_by_us], [true, true]);
  const theirs = await agent.openSession({ ...WANTED, product_no: "no-such-product" }).catch((error) => error);
  assert.deepEqual([theirs.kind, theirs.isRefusedByUs], ["refused", false], theirs.stack);
  const open = await agent.openSession(WANTED, { maxUnitPrice: 4 });
  assert.equal(open.phase, "ready");
  await service.control("price", { product_no: WANTED.product_no, price: "9" });
  await assert.rejects(agent.createSession(WANTED, { maxUnitPrice: 4 }), { kind: "refused", effect: "none" });
  assert.equal((await service.state()).charges.length, 1);
  await agent.close();
  const told = [];
  for await (const event of events) told.push(event);
  assert.ok(told.some(({ event, unit_price }) => event === "priced" && typeof unit_price === "string"), JSON.stringify(told));
});

test("a client buys no more than its cap in a day, though it is made anew", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const capped = () => service.agent({ dailyCapUsd: "10.00", store: new FolderStore(path) });
  const first = capped();
  await first.openSession(WANTED);
  await first.close();
  const second = capped();
  await second.openSession(WANTED);
  const refused = await second.openSession(WANTED).catch((error) => error);
  assert.deepEqual([refused.kind, refused.effect], ["refused", "none"], refused.stack);
  assert.equal((await second.openSession({ ...WANTED, quantity: "0.5" })).phase, "ready");
  await second.createRecharge({ amount_usd: 50 });
  assert.equal((await service.state()).charges.length, 3);
});

test("what a client that is gone has spent must be known under a cap, or nothing is bought", async (t) => {
  const service = await sandbox(t);
  const store = new OwnStore();
  store.spend = async () => {
    throw new Error("the disk is gone");
  };
  const agent = service.agent({ dailyCapUsd: 10, store });
  const refused = await agent.openSession(WANTED).catch((error) => error);
  assert.deepEqual([refused.kind, refused.effect, refused.cause?.name], ["store", "none", "Error"], refused.stack);
  assert.equal((await agent.getBalance()).balance, 100);
  assert.equal((await service.state()).charges.length, 0);
});

test("under a cap a purchase without a price must say what it is to cost", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent({ dailyCapUsd: 60 });
  const wanted = { session_type: "static", product_no: "static-us", duration: 2 };
  await assert.rejects(agent.openSession(wanted), { kind: "invalid", field: "expectedChargeUsd" });
  const open = await agent.openSession(wanted, { expectedChargeUsd: "20" });
  await assert.rejects(open.renew({ duration: 1 }), { kind: "invalid", field: "expectedChargeUsd" });
  assert.equal((await open.renew({ duration: 1 }, { expectedChargeUsd: 10 })).session_id, open.session_id);
  await assert.rejects(open.renew({ duration: 1 }, { expectedChargeUsd: 1000 }), { kind: "refused", effect: "none" });
  assert.equal((await service.state()).charges.length, 2);
});

test("an account whose backend is not ready buys nothing", async (t) => {
  const service = await sandbox(t);
  await assert.rejects(service.agent({ backendReady: false }).openSession(WANTED), { kind: "refused", effect: "none" });
  assert.equal((await service.agent({ backendReady: true }).openSession(WANTED)).phase, "ready");
});

test("a quote is exact, and nothing is sent for it but the list", async (t) => {
  const service = await sandbox(t);
  await service.control("price", { product_no: WANTED.product_no, price: "4.10" });
  const agent = service.agent();
  const product = (await agent.listProducts()).items.find(({ product_no }) => product_no === WANTED.product_no);
  const quote = await agent.quote(product, "0.3");
  assert.deepEqual(quote, { product_no: WANTED.product_no, quantity: 0.3, unit_price: 4.1, total: 1.23, currency: "USD", unit: "GB" });
  assert.match(meta(quote).raw, /"total":1\.23[,}]/);
  for (const [what, quantity] of [[product, 0], [product, "x"], [product, undefined], [product, 10n], [null, 1], [{ ...product, price: -1 }, 1], [{ ...product, type: "static" }, 1.5]]) {
    await assert.rejects(agent.quote(what, quantity), { kind: "invalid", operation: "quote", effect: "none" });
  }
});

test("limits that are none are refused, and so are those of another operation", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  for (const options of [{ maxUnitPrice: -1 }, { maxUnitPrice: "x" }, { maxUnitPrice: NaN + "" }, { expectedChargeUsd: -1 }, { maxUnitPrices: 1 }]) {
    await assert.rejects(agent.createSession(WANTED, options), { kind: "invalid", effect: "none" }, JSON.stringify(options));
  }
  for (const options of [{ dailyCapUsd: "x" }, { dailyCapUsd: -1 }, { backendReady: "no" }]) assert.throws(() => service.agent(options), { kind: "invalid" }, JSON.stringify(options));
  assert.equal((await service.state()).charges.length, 0);
});
