// A reseller's day in a page, and a browser that goes out through its proxy.
import assert from "node:assert/strict";

import { chromium } from "playwright-core";

import { login, sandbox } from "../node/test/lib/sandbox.mjs";
import { Steps, row, seed, usd } from "../node/test/lib/story.mjs";
import { LAUNCH, open as openPage } from "./test/lib/page.mjs";
import { policy, site } from "./test/lib/site.mjs";

const ends = [];
const t = { after: (work) => ends.push(work) };
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

const service = await sandbox(t, "--seed", seed, "--provisioning-ms", "1200-2500");
const browser = await chromium.launch(LAUNCH);
t.after(() => browser.close());
const url = await site(t, { csp: policy(new URL(service.backend_url).origin) });
const page = await openPage(await browser.newContext(), `${url}/page.html`);
// By a name that only the proxy is to look up.
const target = service.target_url.replace("127.0.0.1", "localhost");

/** Goes to the site in a browser of its own, whose proxy is one of the order's. */
async function visit(proxy) {
  const context = await browser.newContext({ proxy });
  try {
    const answer = await (await context.newPage()).goto(target);
    const text = await answer.text();
    return { status: answer.status(), from: answer.status() === 407 ? undefined : JSON.parse(text).address };
  } finally {
    await context.close();
  }
}

console.log("\nhopline in a browser: a reseller's day\n");
await page.exposeFunction("told", ({ event, order_no, status }) => {
  if (event === "ordered") row("ordered", order_no);
  if (event === "order_status") row(status, order_no);
});
const before = await page.evaluate(async (account) => {
  globalThis.reseller = new hopline.ResellerClient({ ...account, store: new hopline.IndexedDBStore("demo") });
  (async () => {
    for await (const event of reseller.events()) await told(event);
  })();
  return (await reseller.getCurrentBalance()).balance;
}, login(service));
row("logged in", `by itself, with the first call; the balance is ${usd(before)} USD`);

const ann = await page.evaluate(() => reseller.createUser({ username: "ann", password: "ann-and-nobody-else" }, { intent: "ann" }));
row("sub-user", `${ann.username}, with the number ${ann.id}`);
const steps = new Steps(() =>
  page.evaluate(async () => {
    const [{ balance: hers }] = (await reseller.listSubUsers({ search: "ann" })).items;
    return { reseller: (await reseller.getCurrentBalance()).balance, ann: hers };
  }),
);
await steps.begin();
const funds = { user_id: ann.id, amount: 50, remark: "for her first order" };
await steps.step("fund", () => page.evaluate((funds) => reseller.adjustSubUserBalance(funds, { intent: "ann-50" }), funds));
row("fund", `she has ${usd(steps.balances.ann)} USD, and the reseller ${usd(steps.balances.reseller)}`);

const { product, found } = await page.evaluate(async () => {
  const { items } = await reseller.queryProducts({ standardCountryCode: "US" });
  const offered = items.filter((product) => product.stock > 0 && !hopline.needsProjectId(product));
  return { product: offered.reduce((one, other) => (other.price < one.price ? other : one)), found: items.length };
});
row("product", `${product.productId} at ${usd(product.price)} USD a ${product.unit}, ${product.stock} in stock, of ${found} in the US`);

const wanted = { poolId: product.productId, userId: ann.id, unitPrice: 0, totalAmount: 0, ipCount: 2, cycleTimes: 1, duration: 1, unit: "month" };
const { order_no, phase, proxies } = await steps.step("order", () =>
  page.evaluate(async (wanted) => {
    const { order_no, phase, order } = await reseller.placeOrder(wanted, { intent: "job-17" });
    const proxies = order.items.flatMap(({ instances }) => instances).map(({ instance_id, exit_ip, ip, http_port, username, password }) => {
      const { server } = new hopline.ProxySettings({ host: ip, port: http_port, protocol: "http", username, password }).playwright();
      // Said here, since a secret loses its text on its way out of the page.
      return { instance_id, exit_ip, at: `${ip}:${http_port}`, proxy: { server, username: username.reveal(), password: password.reveal() } };
    });
    return { order_no, phase, proxies };
  }, wanted),
);
assert.equal(phase, "ready");
for (const { at, exit_ip } of proxies) row("proxy", `HTTP at ${at}, which leaves from ${exit_ip}`);

const seen = await steps.step("browse", () => visit(proxies[0].proxy));
row("browse", `the site answers ${seen.status} to ${seen.from}`);
const renewal = { orderNo: order_no, instances: [proxies[0].instance_id], duration: 1, unit: "month", cycleTimes: 1 };
const { renewed } = await steps.step("renew", () => page.evaluate((renewal) => reseller.renewStaticOrder(renewal, { intent: "renew-17" }), renewal));
row("renew", `${renewed.length} of its ${proxies.length} proxies, for a month`);
await steps.step("cancel", () => page.evaluate((order_no) => reseller.cancelStaticOrder({ order_no }), order_no));
const refusal = await visit(proxies[0].proxy).then(({ status }) => `HTTP ${status}`, (error) => error.message);
assert.match(refusal, /407|AUTH/, "the proxy of a cancelled order was to refuse");
row("cancel", "the order is over, and its proxies refuse the password");

const { records, saved } = await page.evaluate(async (order_no) => {
  const records = [];
  for await (const record of reseller.walkConsumption({ order_no })) records.push(record);
  const saved = await reseller.saved();
  await reseller.close();
  return { records, saved };
}, order_no);
for (const { type, amount, created_at } of records.reverse()) row("record", `${created_at} ${type} ${usd(amount)} USD`);
for (const { intent, holds, operation } of saved) row("saved", `${intent}: ${operation} is ${holds}, so nobody does it twice`);
assert.deepEqual(page.told, []);
steps.table();

const { users, static_orders, entries } = await service.books();
const placed = static_orders.filter(({ user_id }) => user_id === ann.id);
assert.deepEqual(placed.map(({ order_no, status, ip_count }) => [order_no, status, ip_count]), [[order_no, "cancelled", 2]]);
assert.ok(placed[0].traffic_bytes > 0);
assert.equal(users.length, 1);
const hers = entries.filter(({ user_id }) => user_id === ann.id).map(({ type, amount }) => [type, usd(Number(amount))]);
assert.deepEqual(hers, [["adjustment", "50.00"], ["purchase", usd(-2 * product.price)], ["renewal", usd(-product.price)]]);
assert.deepEqual(records.map(({ type, amount }) => [type, usd(amount)]), hers.slice(1));
assert.deepEqual([seen.status, seen.from], [200, proxies[0].exit_ip]);
assert.equal(usd(steps.balances.ann), usd(50 - 3 * product.price));
assert.equal(usd(before - steps.balances.reseller), "50.00");
console.log();
row("checked", "one sub-user, one order, one renewal; the service's own books say the same\n");
for (const end of ends.reverse()) await end();
process.exit(0);
