// A session's whole life through the installed npm package.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ProxyAgent, request } from "undici";

import { Steps, row, stage, usd } from "./test/lib/story.mjs";

const { AgentClient, FolderStore, ProxySettings } = createRequire(join(process.env.HOPLINE_PACKAGE, "package.json"))("hopline");

const service = await stage();
const folder = mkdtempSync(join(tmpdir(), "hopline-demo-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
// By a name that only the proxy is to look up.
const target = service.target_url.replace("127.0.0.1", "localhost");

/** Fetches the site through the session's proxy; the HTTP client is undici, as npm has it. */
async function visit(proxy) {
  const dispatcher = new ProxyAgent(new ProxySettings(proxy).undici());
  try {
    const { statusCode, body } = await request(target, { dispatcher });
    return { status: statusCode, from: (await body.json()).address };
  } finally {
    await dispatcher.close();
  }
}

console.log("\nhopline for node: a session's whole life\n");
const agent = new AgentClient({ apiKey: service.api_key, baseUrl: service.agent_url, store: new FolderStore(folder) });
const steps = new Steps(async () => ({ balance: (await agent.getBalance()).balance }));
const { balance: before } = await steps.begin();
await service.control("target", { block_first_exit: true });
row("balance", `${usd(before)} USD`);

(async () => {
  for await (const { event, session_id, status, estimated_charge_usd } of agent.events()) {
    if (event === "accepted") row("accepted", `${session_id}, for ${usd(Number(estimated_charge_usd))} USD`);
    if (event === "status") row(status, session_id);
  }
})();

const { items } = await agent.listProducts({ type: "dynamic", limit: 100 });
const offered = items.filter(({ available }) => available);
const cheapest = offered.reduce((one, other) => (other.price < one.price ? other : one));
row("cheapest", `${cheapest.product_no} at ${usd(cheapest.price)} USD a ${cheapest.unit}, of ${offered.length} dynamic products`);
const open = await steps.step("buy 1 GB", () =>
  agent.openSession({ session_type: "dynamic", product_no: cheapest.product_no, quantity: 1, protocol: "http" }, { intent: "demo", credentials: true }),
);
assert.equal(open.phase, "ready");
let { proxy } = open.session;
row("proxy", `HTTP at ${proxy.host}:${proxy.port}, with a username and a password; undici's ProxyAgent speaks it`);

const first = await steps.step("fetch", () => visit(proxy));
row("fetch", `the site answers ${first.status} to exit ${first.from}`);
const advice = await open.observe({ status: first.status });
assert.deepEqual(advice, { verdict: "rotate", reason: "http_403" });
row("observe", `a block: rotate, with the reason ${advice.reason}`);
({ proxy } = await steps.step("rotate", () => open.rotate({ reason: advice.reason, include_credentials: true })));
row("rotate", "the session has another exit and another password");
const second = await steps.step("fetch", () => visit(proxy));
row("fetch", `the site answers ${second.status} to exit ${second.from}`);
await steps.step("terminate", () => open.terminate());
const refusal = await visit(proxy).then(() => assert.fail("the proxy of an ended session was to refuse"), (error) => error);
assert.match(`${refusal.message} ${refusal.cause?.message}`, /407|auth/i);
row("terminate", "the session is over, and its proxy refuses the password");
await agent.close();

steps.table();

const state = await service.control("state");
assert.deepEqual(state.charges.map(({ operation, session_id, amount }) => [operation, session_id, Number(amount)]), [["create_session", open.session_id, cheapest.price]]);
assert.deepEqual(state.sessions.map(({ session_id, status, rotations }) => [session_id, status, rotations]), [[open.session_id, "terminated", 1]]);
assert.equal(usd(before - state.balance), usd(cheapest.price));
assert.deepEqual([first.status, second.status], [403, 200]);
assert.notEqual(first.from, second.from);
assert.equal(state.sessions[0].exit, second.from);
console.log();
row("checked", "one session, one charge, two exits; the service's own books say the same\n");
process.exit(0);
