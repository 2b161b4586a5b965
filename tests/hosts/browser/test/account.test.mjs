// The rest of the account in a page: lists, limits, watching, requests of one's own, telemetry, and Playwright's proxy.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ProxySettings } from "hopline";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { profile, stage } from "./lib/chromium.mjs";

test("lists are walked, a balance is watched, and a budget is set", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  await page.exposeFunction("pay", (order_id) => service.control("pay", { order_id }));
  const told = await page.evaluate(async (wanted) => {
    const agent = new hopline.AgentClient(service);
    const walk = agent.walkProducts({ limit: 3 });
    const [walked, first, listed] = [[], [], await agent.listProducts({ limit: 100 })];
    // The purchase goes on from where it was left, though the client and the core are others.
    for await (const { product_no } of walk) if (first.push(product_no) === 3) break;
    const other = new hopline.AgentClient(service);
    const rest = other.walkProducts({ limit: 3 }, { position: walk.position });
    for await (const { items } of rest.pages()) walked.push(...items.map(({ product_no }) => product_no));
    const quote = await agent.quote(listed.items.find(({ product_no }) => product_no === wanted.product_no), "0.3");
    await agent.updateBudget({ daily_limit_usd: "50", key_limit_usd: null });
    const budget = hopline.meta(await agent.request("GET", "/account/budget")).raw;
    const order = await agent.createRecharge({ amount_usd: 10 });
    const watching = agent.getBalance({}, { until: { at: "/balance", atLeast: 110 }, deadlineMs: 30_000 });
    await pay(order.order_id);
    const [{ balance }, { phase }] = [await watching, hopline.meta(await watching)];
    const wrong = await agent.getBalance({}, { until: {} }).catch(({ kind, field }) => [kind, field]);
    const other_list = await (async () => agent.walkPublicProducts({}, { position: walk.position }))().catch(({ kind, field }) => [kind, field]);
    await Promise.all([agent.close(), other.close()]);
    return { all: listed.items.map(({ product_no }) => product_no), walked: [...first, ...walked], end: rest.end, total: quote.total, budget, phase, balance, wrong, other_list };
  }, WANTED);
  assert.deepEqual([told.walked, told.end], [told.all, "last_page"]);
  assert.equal(told.total, 1.2);
  assert.match(told.budget, /50/);
  assert.deepEqual([told.phase, told.balance], ["ready", 110]);
  assert.deepEqual([told.wrong, told.other_list], [["invalid", "until"], ["invalid", "position"]]);
  assert.deepEqual(page.told, []);
});

test("a cap of the day outlives the page that began it", async (t) => {
  const service = await sandbox(t);
  const { fresh, page } = await stage(t, service);
  const buys = async (wanted) => {
    const agent = new hopline.AgentClient({ ...service, dailyCapUsd: "6", store: new hopline.IndexedDBStore("records") });
    const ended = await agent.openSession(wanted, { maxUnitPrice: 4 }).catch((error) => error);
    return [ended.phase ?? ended.kind, ended.effect];
  };
  assert.deepEqual(await page.evaluate(buys, WANTED), ["ready", undefined]);
  await page.close();
  assert.deepEqual(await (await fresh()).evaluate(buys, WANTED), ["refused", "none"]);
  assert.equal((await service.state()).charges.length, 1);
});

test("what was seen is told, and Playwright goes through the proxy of an HTTP session", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  const { proxy, health } = await page.evaluate(async (wanted) => {
    const agent = new hopline.AgentClient(service);
    const { session_id, session } = await agent.openSession({ ...wanted, protocol: "http" }, { credentials: true });
    const event = hopline.sessionEvent({ status: 403, seen: "block", target: location.href });
    for (let n = 0; n < 3; n += 1) await agent.reportSessionEvent({ session_id, event });
    const { host, port, protocol, username, password } = session.proxy;
    const health = await agent.getSessionHealth({ session_id });
    await agent.close();
    return { health: [event.target, health.status], proxy: { host, port, protocol, username: username.reveal(), password: password.reveal() } };
  }, WANTED);
  assert.deepEqual(health, ["127.0.0.1", "degraded"]);
  const context = await profile(t, { proxy: new ProxySettings(proxy).playwright() });
  // By a name that only the proxy looks up: Chromium goes to loopback addresses by itself.
  const answer = await (await context.newPage()).goto(service.target_url.replace("127.0.0.1", "localhost"));
  assert.equal(answer.status(), 200);
  assert.ok((await service.state()).traffic_bytes > 0);
  assert.throws(() => new ProxySettings({ ...proxy, protocol: "socks5" }).playwright(), { kind: "invalid", field: "protocol" });
});
