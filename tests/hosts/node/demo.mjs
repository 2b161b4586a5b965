// A session's whole life through the installed npm package: `cargo xtask demo --host node [--seed N]`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { ProxyAgent, request } from "undici";

const { AgentClient, FolderStore, ProxySettings } = createRequire(join(process.env.HOPLINE_PACKAGE, "package.json"))("hopline");
const { values } = parseArgs({ options: { seed: { type: "string", default: "7" } } });

const row = (label, text) => console.log(`  ${label.padEnd(11)}${text}`);
const usd = (amount) => amount.toFixed(2);

const folder = mkdtempSync(join(tmpdir(), "hopline-demo-"));
const sandbox = spawn(process.env.HOPLINE_SANDBOX, ["--with-parent", "--seed", values.seed], { stdio: ["pipe", "pipe", "inherit"] });
process.once("exit", () => {
  sandbox.kill();
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

const ready = JSON.parse(await new Promise((resolve, reject) => {
  createInterface(sandbox.stdout).once("line", resolve);
  sandbox.once("error", reject);
}));
const control = (path, body) => fetch(`${ready.control_url}/${path}`, body && { method: "POST", body: JSON.stringify(body) }).then((answer) => answer.json());
// By a name that only the proxy is to look up.
const target = ready.target_url.replace("127.0.0.1", "localhost");

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
const agent = new AgentClient({ apiKey: ready.api_key, baseUrl: ready.agent_url, store: new FolderStore(folder) });
const steps = [];
let { balance } = await agent.getBalance();
const before = balance;
await control("target", { block_first_exit: true });
row("balance", `${usd(balance)} USD`);

/** Does a step, and reads what it cost. */
async function step(name, work) {
  const began = performance.now();
  const done = await work();
  const time = performance.now() - began;
  const read = await agent.getBalance();
  steps.push({ name, time, cost: balance - read.balance, balance: read.balance });
  balance = read.balance;
  return done;
}

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
const open = await step("buy 1 GB", () =>
  agent.openSession({ session_type: "dynamic", product_no: cheapest.product_no, quantity: 1, protocol: "http" }, { intent: "demo", credentials: true }),
);
assert.equal(open.phase, "ready");
let { proxy } = open.session;
row("proxy", `HTTP at ${proxy.host}:${proxy.port}, with a username and a password; undici's ProxyAgent speaks it`);

const first = await step("fetch", () => visit(proxy));
row("fetch", `the site answers ${first.status} to exit ${first.from}`);
const advice = await open.observe({ status: first.status });
assert.deepEqual(advice, { verdict: "rotate", reason: "http_403" });
row("observe", `a block: rotate, with the reason ${advice.reason}`);
({ proxy } = await step("rotate", () => open.rotate({ reason: advice.reason, include_credentials: true })));
row("rotate", "the session has another exit and another password");
const second = await step("fetch", () => visit(proxy));
row("fetch", `the site answers ${second.status} to exit ${second.from}`);
await step("terminate", () => open.terminate());
const refusal = await visit(proxy).then(() => assert.fail("the proxy of an ended session was to refuse"), (error) => error);
assert.match(`${refusal.message} ${refusal.cause?.message}`, /407|auth/i);
row("terminate", "the session is over, and its proxy refuses the password");
await agent.close();

console.log(`\n  ${"step".padEnd(11)}${"time".padStart(8)}${"cost USD".padStart(12)}${"balance USD".padStart(14)}`);
for (const { name, time, cost, balance } of steps) {
  console.log(`  ${name.padEnd(11)}${`${(time / 1000).toFixed(2)} s`.padStart(8)}${usd(cost).padStart(12)}${usd(balance).padStart(14)}`);
}

const state = await control("state");
assert.deepEqual(state.charges.map(({ operation, session_id, amount }) => [operation, session_id, Number(amount)]), [["create_session", open.session_id, cheapest.price]]);
assert.deepEqual(state.sessions.map(({ session_id, status, rotations }) => [session_id, status, rotations]), [[open.session_id, "terminated", 1]]);
assert.equal(usd(before - state.balance), usd(cheapest.price));
assert.deepEqual([first.status, second.status], [403, 200]);
assert.notEqual(first.from, second.from);
assert.equal(state.sessions[0].exit, second.from);
console.log();
row("checked", "one session, one charge, two exits; the service's own books say the same\n");
process.exit(0);
