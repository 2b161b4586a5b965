// A session's whole life in a page, and a browser that goes out through it.
import assert from "node:assert/strict";

import { chromium } from "playwright-core";

import { sandbox } from "../node/test/lib/sandbox.mjs";
import { Steps, row, seed, usd } from "../node/test/lib/story.mjs";
import { LAUNCH, account, open as openPage } from "./test/lib/page.mjs";
import { policy, site } from "./test/lib/site.mjs";

const ends = [];
const t = { after: (work) => ends.push(work) };
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

const service = await sandbox(t, "--seed", seed, "--provisioning-ms", "1200-2500");
const browser = await chromium.launch(LAUNCH);
t.after(() => browser.close());
const url = await site(t, { csp: policy(new URL(service.agent_url).origin) });
const page = await openPage(await browser.newContext(), `${url}/page.html`);
// By a name that only the proxy is to look up.
const target = service.target_url.replace("127.0.0.1", "localhost");

/** Goes to the site in a browser of its own, whose proxy is the session's. */
async function visit({ host, port, username, password }) {
  const context = await browser.newContext({ proxy: { server: `http://${host}:${port}`, username, password } });
  try {
    const answer = await (await context.newPage()).goto(target);
    const text = await answer.text();
    return { status: answer.status(), from: answer.status() === 407 ? undefined : JSON.parse(text).address };
  } finally {
    await context.close();
  }
}

console.log("\nhopline in a browser: a session's whole life\n");
await page.exposeFunction("told", ({ event, session_id, status, estimated_charge_usd }) => {
  if (event === "accepted") row("accepted", `${session_id}, for ${usd(Number(estimated_charge_usd))} USD`);
  if (event === "status") row(status, session_id);
});
await page.evaluate((client) => {
  globalThis.agent = new hopline.AgentClient({ ...client, store: new hopline.IndexedDBStore("demo") });
  (async () => {
    for await (const event of agent.events()) await told(event);
  })();
}, account(service));
const steps = new Steps(() => page.evaluate(async () => ({ balance: (await agent.getBalance()).balance })));
const { balance: before } = await steps.begin();
await service.control("target", { block_first_exit: true });
row("balance", `${usd(before)} USD`);

const offered = await page.evaluate(async () => (await agent.listProducts({ type: "dynamic", limit: 100 })).items.filter(({ available }) => available));
const cheapest = offered.reduce((one, other) => (other.price < one.price ? other : one));
row("cheapest", `${cheapest.product_no} at ${usd(cheapest.price)} USD a ${cheapest.unit}, of ${offered.length} dynamic products`);
const open = await steps.step("buy 1 GB", () =>
  page.evaluate(async (product_no) => {
    const wanted = { session_type: "dynamic", product_no, quantity: 1, protocol: "http" };
    globalThis.open = await agent.openSession(wanted, { intent: "demo", credentials: true });
    const { host, port, username, password } = open.session.proxy;
    return { phase: open.phase, session_id: open.session_id, proxy: { host, port, username: username.reveal(), password: password.reveal() } };
  }, cheapest.product_no),
);
assert.equal(open.phase, "ready");
row("proxy", `HTTP at ${open.proxy.host}:${open.proxy.port}, with a username and a password; Chromium itself speaks it`);

const first = await steps.step("browse", () => visit(open.proxy));
row("browse", `the site answers ${first.status} to exit ${first.from}`);
const advice = await page.evaluate((status) => globalThis.open.observe({ status }), first.status);
assert.deepEqual(advice, { verdict: "rotate", reason: "http_403" });
row("observe", `a block: rotate, with the reason ${advice.reason}`);
const proxy = await steps.step("rotate", () =>
  page.evaluate(async (reason) => {
    const { host, port, username, password } = (await globalThis.open.rotate({ reason, include_credentials: true })).proxy;
    return { host, port, username: username.reveal(), password: password.reveal() };
  }, advice.reason),
);
row("rotate", "the session has another exit and another password");
const second = await steps.step("browse", () => visit(proxy));
row("browse", `the site answers ${second.status} to exit ${second.from}`);
await steps.step("terminate", () => page.evaluate(() => globalThis.open.terminate().then(() => undefined)));
const refusal = await visit(proxy).then(({ status }) => `HTTP ${status}`, (error) => error.message);
assert.match(refusal, /407|AUTH/, "the proxy of an ended session was to refuse");
row("terminate", "the session is over, and its proxy refuses the password");
await page.evaluate(() => agent.close());
assert.deepEqual(page.told, []);

steps.table();

const state = await service.state();
assert.deepEqual(state.charges.map(({ operation, session_id, amount }) => [operation, session_id, Number(amount)]), [["create_session", open.session_id, cheapest.price]]);
assert.deepEqual(state.sessions.map(({ session_id, status, rotations }) => [session_id, status, rotations]), [[open.session_id, "terminated", 1]]);
assert.equal(usd(before - state.balance), usd(cheapest.price));
assert.deepEqual([first.status, second.status], [403, 200]);
assert.notEqual(first.from, second.from);
assert.equal(state.sessions[0].exit, second.from);
console.log();
row("checked", "one session, one charge, two exits; the service's own books say the same\n");
for (const end of ends.reverse()) await end();
process.exit(0);
