// The programs of the package's README and of the site's pages, as printed: type-checked, run, killed, and run again.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";

import { AgentClient } from "hopline";

import { noting } from "./lib/noting.mjs";
import { WANTED, folder, program, sandbox } from "./lib/sandbox.mjs";
import { RUNTIMES, lacks, tool } from "./lib/tools.mjs";

const text = readFileSync(join(dirname(createRequire(import.meta.url).resolve("hopline")), "README.md"), "utf8");
const shown = Object.fromEntries([...text.matchAll(/^```js\n\/\/ (\S+\.[cm]?js)\n([^]*?)^```$/gm)].map(([, name, code]) => [name, code]));
const PAGES = join(process.env.HOPLINE_DOCS, "programs/js");
const kept = readdirSync(PAGES).filter((name) => !name.endsWith(".html")).sort();
const programs = { ...shown, ...Object.fromEntries(kept.map((name) => [name, readFileSync(join(PAGES, name), "utf8")])) };
const PLACE = fileURLToPath(new URL("programs/readme/", import.meta.url));
mkdirSync(PLACE, { recursive: true });
// A page's scripts are modules, too, though they are called .js.
writeFileSync(join(PLACE, "package.json"), '{ "type": "module" }');
for (const [name, code] of Object.entries(programs)) writeFileSync(join(PLACE, name), code);
// The packages that one of them needs beside this one.
mkdirSync(join(PLACE, "node_modules"), { recursive: true });
for (const name of ["undici", "@crawlee", "playwright", "puppeteer-core"]) {
  if (!existsSync(join(PLACE, "node_modules", name))) symlinkSync(join(process.env.HOPLINE_TOOLS, name), join(PLACE, "node_modules", name));
}

const QUOTED = "0\\.5 GB of dynamic-world cost 2 USD\n";
const BOUGHT = "ses_\\w+ is a proxy at 127\\.0\\.0\\.1:\\d+\nits health: \\{[^]*?status: '\\w+'[^]*?\\n\\}\n";
const USED = "order ORD-\\w+ is ready\na proxy at 127\\.\\d+\\.\\d+\\.\\d+:\\d+\n(?:\\{\n[^}]*type: '(?:renewal|purchase)',[^}]*\\}\n){2}";

/** The programs that use other people's libraries, but for `undici`. */
const THEIRS = ["crawlee.mjs", "playwright.mjs", "puppeteer.mjs"];

/** Starts a program of the README in a folder where its records are. */
function start(t, name, { api_key, agent_url, username, password, backend_url }, place, more = [], node = undefined, added = {}) {
  const environment = {
    ...added,
    HOPLINE_API_KEY: api_key,
    HOPLINE_BASE_URL: agent_url,
    HOPLINE_USERNAME: username,
    HOPLINE_PASSWORD: password,
    HOPLINE_BACKEND_URL: backend_url,
    PORT: "0",
  };
  const started = program(`readme/${name}`, environment, more, place, node);
  t.after(() => started.child.kill("SIGKILL"));
  return started;
}

/** Runs it to its end, which is to be a good one, and gives what it printed. */
async function run(t, name, service, place) {
  const { code, out, errors } = await start(t, name, service, place).ended;
  assert.deepEqual([code, errors], [0, ""]);
  return out;
}

/** Kills a program once something is so. */
async function killWhen({ child, ended }, what) {
  while (!(await what())) {
    assert.deepEqual([child.exitCode, child.signalCode], [null, null], "it ended before it was killed");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.kill("SIGKILL");
  assert.equal((await ended).signal, "SIGKILL");
}

test("the README and the pages have these programs, and where both have one it is the same", () => {
  assert.deepEqual(Object.keys(shown), ["first.mjs", "shortest.mjs"]);
  assert.deepEqual(kept, ["account.mjs", "agent.mjs", "balance.cjs", "buy.js", "crawlee.mjs", "main.js", "offline.mjs", "playwright.mjs", "pool.mjs", "port-curl.mjs", "program.mjs", "puppeteer.mjs", "relay.mjs", "reseller.mjs", "shortest.mjs", "through.mjs", "worker.js"]);
  assert.equal(shown["shortest.mjs"], programs["shortest.mjs"]);
  for (const name of ["shortest.mjs", "buy.js"]) assert.ok(programs[name].split("\n").filter((line) => line.trim()).length <= 12, name);
});

test("the compiler accepts the README's and the pages' programs against the package's types", async () => {
  const tools = process.env.HOPLINE_TOOLS;
  const tsc = join(tools, "typescript/bin/tsc");
  const [own, others] = [false, true].map((isTheirs) => Object.keys(programs).filter((name) => THEIRS.includes(name) === isTheirs).map((name) => join(PLACE, name)));
  const flags = ["--strict", "--checkJs", "--noEmit", "--module", "node16", "--target", "es2022", "--typeRoots", join(tools, "@types"), "--types", "node"];
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, ...flags, ...own]).catch((error) => error);
  assert.equal(stdout, "");
  // The types of these libraries have faults of their own, and are where the tools are.
  const compilerOptions = { strict: true, checkJs: true, noEmit: true, module: "node16", target: "es2022", typeRoots: [join(tools, "@types")], types: ["node"], skipLibCheck: true, paths: { "*": [join(tools, "*")] } };
  writeFileSync(join(PLACE, "theirs.json"), JSON.stringify({ compilerOptions, files: others }));
  const theirs = await promisify(execFile)(process.execPath, [tsc, "--project", join(PLACE, "theirs.json")]).catch((error) => error);
  assert.equal(theirs.stdout, "");
});

const SAYS = {
  "first.mjs": /^dynamic-world: [\d.]+ USD a GB$/im,
  "balance.cjs": /^100 USD\n$/,
  "offline.mjs": /^\{ balance: 100 \}\n$/,
  "agent.mjs": /^\{ balance: [\d.]+[^]*\}\n$/,
  "account.mjs": /^the budget of \S+: \{[^]*daily[^]*\}\n$/,
};
for (const name of Object.keys(SAYS)) {
  test(`the README's ${name} runs as printed, and again`, async (t) => {
    const [service, place] = [await sandbox(t), folder()];
    for (let n = 0; n < 2; n += 1) assert.match(await run(t, name, service, place), SAYS[name]);
  });
}

// Each is held at the next step, so that it is killed before that: a request to end its session does not end it for an hour.
for (const [operation, then, kind] of [["list_products", "create_session", "delay"], ["create_session", "get_session", "delay"], ["get_session", "terminate_session", "in_progress"]]) {
  test(`the README's shortest program goes on after a kill at ${operation}, and buys again today and tomorrow`, async (t) => {
    const service = await sandbox(t);
    const [place, site] = [folder(), [service.target_url]];
    await service.fault({ kind, ms: 3_600_000 }, then);
    await killWhen(start(t, "shortest.mjs", service, place, site), async () => (await service.state()).executions[operation] > 0);
    await service.forgetFaults();
    for (let charges = 1; charges <= 3; charges += 1) {
      const { code, out, errors } = await start(t, "shortest.mjs", service, place, site).ended;
      assert.deepEqual([code, out, errors], [0, "200 for 2 USD\n", ""]);
      const state = await service.state();
      assert.deepEqual([state.charges.length, state.sessions.at(-1).status], [charges, "terminated"]);
      if (charges === 2) await service.control("clock", { advance_ms: 86_400_000 });
    }
  });
}

test("the README's shortest program buys nothing where it is not told what to fetch", async (t) => {
  const service = await sandbox(t);
  const { code, errors } = await start(t, "shortest.mjs", service, folder()).ended;
  assert.deepEqual([code, (await service.state()).charges], [1, []], errors);
});

test("the pages' longer program buys once: run to its end, it says at the next start that its session is over", async (t) => {
  const service = await sandbox(t);
  const place = folder();
  assert.match(await run(t, "program.mjs", service, place), new RegExp(`^${QUOTED}${BOUGHT}$`));
  const { code, out, errors } = await start(t, "program.mjs", service, place).ended;
  assert.deepEqual([code, out], [1, ""]);
  assert.match(errors, /over/);
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["terminated"]]);
});

for (const [name, command] of Object.entries(RUNTIMES)) {
  test(`the pages' longer program buys once in ${name}, killed or not`, { skip: !existsSync([command].flat()[0]) && "it is not for this system" }, async (t) => {
    const service = await sandbox(t, "--provisioning-ms", "600000");
    const place = folder();
    await killWhen(start(t, "program.mjs", service, place, [], command), async () => (await service.state()).charges.length > 0);
    await service.control("clock", { advance_ms: 600_000 });
    const { code, out } = await start(t, "program.mjs", service, place, [], command).ended;
    assert.deepEqual([code, /^ses_\w+ is a proxy at /.test(out)], [0, true], out);
    const again = await start(t, "program.mjs", service, place, [], command).ended;
    assert.ok(again.code === 1 && again.errors.includes("is over"), again.errors);
    const { charges, sessions } = await service.state();
    assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["terminated"]]);
  });
}

test("the pages' longer program goes on with its purchase after a kill, though another product is the cheapest now", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "600000");
  const place = folder();
  await killWhen(start(t, "program.mjs", service, place), async () => (await service.state()).charges.length > 0);
  await service.control("price", { product_no: "dynamic-world", price: "400" });
  await service.control("clock", { advance_ms: 600_000 });
  assert.match(await run(t, "program.mjs", service, place), new RegExp(`^${BOUGHT}$`));
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["terminated"]]);
});

test("the pages' pool is bought for whoever visits, once", async (t) => {
  const service = await sandbox(t);
  const place = folder();
  for (let run = 0; run < 2; run += 1) {
    const { code, out, errors } = await start(t, "pool.mjs", service, place, [service.target_url, service.target_url]).ended;
    assert.deepEqual([code, errors, out.match(/advice: 'keep'/g)?.length], [0, "", 2], out);
  }
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["active"]]);
});

test("the pages' dispatcher of a pool fetches pages", async (t) => {
  const [service, place] = [await sandbox(t, "--session-limit", "100"), folder()];
  const { code, out, errors } = await start(t, "through.mjs", service, place, Array(6).fill(service.target_url)).ended;
  assert.deepEqual([code, errors, out], [0, "", "200\n".repeat(6)]);
  const { charges } = await service.state();
  assert.ok(charges.length >= 1 && charges.length <= 3);
});

test("the pages' crawler of Crawlee fetches pages", { timeout: 60_000 }, async (t) => {
  const [service, place] = [await sandbox(t, "--session-limit", "100"), folder()];
  const site = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<p>a page")).listen(0, "127.0.0.1");
  t.after(() => (site.closeAllConnections(), site.close()));
  await once(site, "listening");
  const urls = [1, 2, 3].map((number) => `http://shop.localhost:${site.address().port}/${number}`);
  const { code, out, errors } = await start(t, "crawlee.mjs", service, place, urls).ended;
  assert.deepEqual([code, urls.filter((url) => !out.includes(`${url} 200`))], [0, []], out + errors);
});

for (const name of ["playwright.mjs", "puppeteer.mjs"]) {
  test(`the pages' ${name} opens pages in Chromium`, { skip: lacks("chromium"), timeout: 120_000 }, async (t) => {
    const [service, place] = [await sandbox(t, "--session-limit", "100"), folder()];
    // As root Chromium has no sandbox of its own.
    const chromium = join(place, "chromium");
    writeFileSync(chromium, `#!/bin/sh\nexec "${process.env.HOPLINE_CHROMIUM ?? "chromium"}" --no-sandbox "$@"\n`, { mode: 0o755 });
    const urls = [1, 2].map((number) => new URL(`/page/${number}`, service.target_url).href);
    const { code, out, errors } = await start(t, name, service, place, urls, undefined, { HOPLINE_CHROMIUM: chromium }).ended;
    assert.deepEqual([code, urls.filter((url) => !out.includes(`${url} 200`))], [0, []], out + errors);
    assert.ok((await service.control("visits")).visits.every(({ exit }) => exit.startsWith("127.64.")));
  });
}

test("the pages' port leads curl through a SOCKS5 session", { skip: lacks("curl"), timeout: 60_000 }, async (t) => {
  const [service, place] = [await sandbox(t), folder()];
  const { code, out, errors } = await start(t, "port-curl.mjs", service, place, Array(3).fill(service.target_url)).ended;
  assert.deepEqual([code, errors, out.match(/"address":"127\.64\./g)?.length], [0, "", 3], out);
});

test("the pages' pool reads 1 500 pages with 1 024 file descriptors, by one session", { skip: process.platform === "win32" && "it has no such limit", timeout: 300_000 }, async (t) => {
  const service = await sandbox(t);
  const environment = { HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url };
  const given = ["1024", process.execPath, join(PLACE, "pool.mjs"), ...Array(1500).fill(service.target_url)];
  const { code, out, errors } = await program("limited.sh", environment, given, folder(), "sh", 240_000).ended;
  assert.deepEqual([code, errors, out.match(/advice: 'keep'/g)?.length], [0, "", 1500], out.slice(-1000));
  assert.equal((await service.state()).charges.length, 1);
});

test("the pages' reseller makes nothing twice: run again, and after a kill", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "600000");
  const place = folder();
  const open = join(place, "hopline-records/open");
  await killWhen(start(t, "reseller.mjs", service, place), async () => {
    const order = (await service.books()).static_orders.find(({ order_no }) => order_no.startsWith("ORD-"));
    // An operation with the order's number was answered, and is no longer in doubt.
    return order && readdirSync(open).some((name) => readable(join(open, name)).includes(order.order_no));
  });
  await service.control("clock", { advance_ms: 600_000 });
  assert.match(await run(t, "reseller.mjs", service, place), new RegExp(`^${USED}$`));
  const before = await service.books();
  assert.deepEqual([before.users.length, before.static_orders.filter(({ order_no }) => order_no.startsWith("ORD-")).length], [1, 1]);
  assert.match((await start(t, "reseller.mjs", service, place).ended).out, /^order ORD-\w+ is \w+\n/);
  const after = await service.books();
  assert.deepEqual([after.users, after.static_orders, after.entries], [before.users, before.static_orders, before.entries]);
});

/** A file's text; none once it is gone. */
function readable(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The pages' relay, before a service. */
async function relay(t, service) {
  const { child } = start(t, "relay.mjs", service, folder());
  const [line] = await once(child.stdout, "data");
  return `http://127.0.0.1:${/port: (\d+)/.exec(line)[1]}/api/v1`;
}

test("through the pages' relay a purchase whose answer is lost is charged once", async (t) => {
  const service = await sandbox(t);
  const baseUrl = await relay(t, service);
  const asPage = (url, init) => fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), origin: new URL(url).origin } });
  const agent = new AgentClient({ baseUrl, fetch: asPage, account: "ann" });
  t.after(() => agent.close());
  for (const fault of [{ kind: "drop_after" }, { kind: "html", status: 502, after: true }, { kind: "truncate" }]) await service.fault(fault, "create_session");
  const { phase } = await agent.openSession(WANTED);
  assert.equal(phase, "ready");
  assert.equal((await service.state()).charges.length, 1);
});

test("the pages' relay passes on what it names and no more, once, and gives the answer as it is", async (t) => {
  let answer = () => {};
  const { asked, baseUrl } = await noting(t, (_, response) => answer(response));
  const address = await relay(t, { api_key: "canary-key", agent_url: baseUrl });
  const { origin } = new URL(address);
  const buy = (headers, body = '{"a":1}') => fetch(`${address}/sessions`, { method: "POST", redirect: "manual", headers: { origin, ...headers }, body });

  const date = "Sat, 21 Nov 2026 12:00:00 GMT";
  answer = (response) => response.writeHead(429, { "content-type": "application/json", "retry-after": "7", date, "set-cookie": "a=b" }).end('{"success":false}');
  const refused = await buy({ "content-type": "application/json", "idempotency-key": "key-1", cookie: "a=b", "x-api-key": "somebody's" });
  assert.deepEqual([refused.status, await refused.text()], [429, '{"success":false}']);
  assert.deepEqual(["retry-after", "date", "content-type", "set-cookie"].map((name) => refused.headers.get(name)), ["7", date, "application/json", null]);
  const [{ method, url, headers, body }] = asked;
  assert.deepEqual([method, url, body, headers["idempotency-key"], headers["x-api-key"], headers.cookie], ["POST", "/v1/sessions", '{"a":1}', "key-1", "canary-key", undefined]);

  answer = (response) => response.writeHead(307, { location: "/v1/elsewhere" }).end();
  assert.equal((await buy({})).status, 307);
  answer = (response) => response.destroy();
  const lost = await buy({});
  assert.deepEqual([lost.status, lost.headers.get("content-type")], [502, "text/plain"]);
  assert.equal(asked.length, 3, "nothing is repeated, no redirect is followed");

  await fetch(`${address}/sessions/ses_1?include_credentials=true`).catch(() => {});
  assert.deepEqual([asked[3].method, asked[3].url], ["GET", "/v1/sessions/ses_1?include_credentials=true"]);
  for (const [method, path] of [["GET", "/account"], ["POST", "/sessions/ses_1/rotate"], ["GET", "/sessions/%2e%2e"], ["POST", "/billing/recharge"]]) {
    const foreign = await fetch(`${address}${path}`, { method, headers: { origin } });
    assert.deepEqual([foreign.status, (await foreign.json()).error.code], [404, "ROUTE_NOT_FOUND"]);
  }
  assert.equal((await buy({ origin: "https://evil.example" })).status, 403);
  assert.equal((await buy({}, '{"quantity":6}')).status, 422);
  assert.equal(asked.length, 4);
});
