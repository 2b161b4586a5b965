// A reseller's day through the installed npm package: a sub-user, its money, a static order and its proxies.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ProxyAgent, request } from "undici";

import { Steps, row, stage, usd } from "./test/lib/story.mjs";

const { FolderStore, ProxySettings, ResellerClient, needsProjectId } = createRequire(join(process.env.HOPLINE_PACKAGE, "package.json"))("hopline");

const service = await stage();
const folder = mkdtempSync(join(tmpdir(), "hopline-demo-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
// By a name that only the proxy is to look up.
const target = service.target_url.replace("127.0.0.1", "localhost");

/** Fetches the site through a proxy of the order; the HTTP client is undici, as npm has it. */
async function visit({ ip, http_port, username, password }) {
  const dispatcher = new ProxyAgent(new ProxySettings({ host: ip, port: http_port, protocol: "http", username, password }).undici());
  try {
    const { statusCode, body } = await request(target, { dispatcher });
    return { status: statusCode, from: (await body.json()).address };
  } finally {
    await dispatcher.close();
  }
}

console.log("\nhopline for node: a reseller's day\n");
const { username, password, backend_url: baseUrl } = service;
const reseller = new ResellerClient({ username, password, baseUrl, store: new FolderStore(folder) });
const { balance: before } = await reseller.getCurrentBalance();
row("logged in", `by itself, with the first call; the balance is ${usd(before)} USD`);

const ann = await reseller.createUser({ username: "ann", password: "ann-and-nobody-else" }, { intent: "ann" });
row("sub-user", `${ann.username}, with the number ${ann.id}`);
const steps = new Steps(async () => {
  const [{ balance: hers }] = (await reseller.listSubUsers({ search: "ann" })).items;
  return { reseller: (await reseller.getCurrentBalance()).balance, ann: hers };
});
await steps.begin();
await steps.step("fund", () => reseller.adjustSubUserBalance({ user_id: ann.id, amount: 50, remark: "for her first order" }, { intent: "ann-50" }));
row("fund", `she has ${usd(steps.balances.ann)} USD, and the reseller ${usd(steps.balances.reseller)}`);

const { items } = await reseller.queryProducts({ standardCountryCode: "US" });
const offered = items.filter((product) => product.stock > 0 && !needsProjectId(product));
const product = offered.reduce((one, other) => (other.price < one.price ? other : one));
row("product", `${product.productId} at ${usd(product.price)} USD a ${product.unit}, ${product.stock} in stock, of ${items.length} in the US`);

(async () => {
  for await (const { event, order_no, status } of reseller.events()) {
    if (event === "ordered") row("ordered", order_no);
    if (event === "order_status") row(status, order_no);
  }
})();
const wanted = { poolId: product.productId, userId: ann.id, unitPrice: 0, totalAmount: 0, ipCount: 2, cycleTimes: 1, duration: 1, unit: "month" };
const { order_no, phase, order } = await steps.step("order", () => reseller.placeOrder(wanted, { intent: "job-17" }));
assert.equal(phase, "ready");
const proxies = order.items.flatMap(({ instances }) => instances);
for (const { ip, http_port, exit_ip } of proxies) row("proxy", `HTTP at ${ip}:${http_port}, which leaves from ${exit_ip}`);

const seen = await steps.step("fetch", () => visit(proxies[0]));
row("fetch", `the site answers ${seen.status} to ${seen.from}`);
const { renewed } = await steps.step("renew", () =>
  reseller.renewStaticOrder({ orderNo: order_no, instances: [proxies[0].instance_id], duration: 1, unit: "month", cycleTimes: 1 }, { intent: "renew-17" }),
);
row("renew", `${renewed.length} of its ${proxies.length} proxies, for a month`);
await steps.step("cancel", () => reseller.cancelStaticOrder({ order_no }));
const refusal = await visit(proxies[0]).then(() => assert.fail("the proxy of a cancelled order was to refuse"), (error) => error);
assert.match(`${refusal.message} ${refusal.cause?.message}`, /407|auth/i);
row("cancel", "the order is over, and its proxies refuse the password");

const records = [];
for await (const record of reseller.walkConsumption({ order_no })) records.push(record);
for (const { type, amount, created_at } of records.reverse()) row("record", `${created_at} ${type} ${usd(amount)} USD`);
for (const { intent, holds, operation } of await reseller.saved()) row("saved", `${intent}: ${operation} is ${holds}, so nobody does it twice`);
await reseller.close();
steps.table();

const { backend } = await service.control("state");
const placed = backend.static_orders.filter(({ user_id }) => user_id === ann.id);
assert.deepEqual(placed.map(({ order_no, status, ip_count }) => [order_no, status, ip_count]), [[order_no, "cancelled", 2]]);
assert.ok(placed[0].traffic_bytes > 0);
const entries = backend.entries.filter(({ user_id }) => user_id === ann.id).map(({ type, amount }) => [type, usd(Number(amount))]);
assert.deepEqual(entries, [["adjustment", "50.00"], ["purchase", usd(-2 * product.price)], ["renewal", usd(-product.price)]]);
assert.deepEqual(records.map(({ type, amount }) => [type, usd(amount)]), entries.slice(1));
assert.deepEqual([seen.status, seen.from], [200, proxies[0].exit_ip]);
assert.equal(usd(steps.balances.ann), usd(50 - 3 * product.price));
assert.equal(usd(before - steps.balances.reseller), "50.00");
console.log();
row("checked", "one sub-user, one order, one renewal; the service's own books say the same\n");
process.exit(0);
