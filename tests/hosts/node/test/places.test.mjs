// The package with the tools and runtimes that people have: bundlers of server code, test runners, Bun, Deno, and Workers. Pages are in
// ../../browser.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { AgentClient, IndexedDBStore } from "hopline";

import { folder, sandbox } from "./lib/sandbox.mjs";
import { NODE24, RUNTIMES, tool } from "./lib/tools.mjs";
import { worker } from "./lib/workerd.mjs";

/** Where the package is installed. Folders beside it find it. */
const PACKAGE = dirname(fileURLToPath(import.meta.resolve("hopline")));
const WANTED = `{ session_type: "dynamic", product_no: "dynamic-world", quantity: 1 }`;

/** Writes files into a folder beside the package, and returns it. */
function app(t, files) {
  const place = mkdtempSync(join(dirname(dirname(PACKAGE)), "places-"));
  t.after(() => rmSync(place, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
  return place;
}

/** Runs a command, and returns what it wrote. */
async function run(command, given, options) {
  const { stdout, stderr } = await promisify(execFile)(command, given, { timeout: 120_000, ...options }).catch((error) => ({ stdout: error.stdout, stderr: `${error.stderr}\n${error.message}` }));
  return { out: stdout.trim(), errors: stderr };
}

const account = ({ agent_url, api_key }) => ({ HOPLINE_BASE_URL: agent_url, HOPLINE_API_KEY: api_key });
const withAccount = (service, more) => ({ env: { ...process.env, ...account(service), ...more } });

/** A program that buys a session under an intent, and ends it. */
const PROGRAM = (from) => `
import { AgentClient, FolderStore } from "${from}";
const agent = new AgentClient({ store: new FolderStore(process.argv[2]) });
agent.openSession(${WANTED}, { intent: "job" }).then((open) => open.terminate()).then(() => "bought", ({ kind, message }) => kind + ": " + message)
  .then(async (what) => (await agent.close(), console.log(what)));
`;

async function bought(t, service, { out, errors }) {
  assert.deepEqual([out, (await service.state()).charges.length], ["bought", 1], errors);
}

for (const [format, name] of [["cjs", "main.cjs"], ["esm", "main.mjs"]]) {
  test(`esbuild's bundle for a server, ${format}: the core beside it or within it, or an error that says both`, async (t) => {
    const place = app(t, { "beside.mjs": PROGRAM("hopline"), "within.mjs": PROGRAM("hopline/inline") });
    const bundled = async (entry, to) => {
      const { warnings } = await tool("esbuild").build({ absWorkingDir: place, entryPoints: [entry], bundle: true, platform: "node", format, outfile: to, logLevel: "silent", external: ["undici"] });
      // That a module's own address is empty in CommonJS.
      assert.deepEqual(warnings.filter(({ id }) => id !== "empty-import-meta"), []);
    };
    // Where it runs there is no package.
    const far = folder();
    await bundled("beside.mjs", join(far, name));
    await bundled("within.mjs", join(far, `within-${name}`));
    const service = await sandbox(t);
    const missing = await run(process.execPath, [join(far, name), folder()], withAccount(service));
    assert.match(missing.out, /^unavailable: load: the core could not be read, .*--external:hopline.*`node\.wasm`.*`hopline\/inline`.*; nothing was sent$/, missing.errors);
    await bought(t, service, await run(process.execPath, [join(far, `within-${name}`), folder()], withAccount(service)));
    cpSync(join(PACKAGE, "node.wasm"), join(far, "node.wasm"));
    const other = await sandbox(t);
    await bought(t, other, await run(process.execPath, [join(far, name), folder()], withAccount(other)));
  });
}

test("Bun runs it, bundles it, and compiles it to a program that may be moved", async (t) => {
  const place = app(t, { "main.mjs": PROGRAM("hopline") });
  const far = folder();
  const made = await run(RUNTIMES.Bun, ["build", "--compile", "main.mjs", "--outfile", join(far, "before")], { cwd: place });
  mkdirSync(join(far, "moved"));
  renameSync(join(far, "before"), join(far, "moved", "main"));
  const bundle = await run(RUNTIMES.Bun, ["build", "--target=bun", "main.mjs", "--outdir", join(far, "bundle")], { cwd: place });
  rmSync(place, { recursive: true });
  const service = await sandbox(t);
  await bought(t, service, await run(join(far, "moved", "main"), [folder()], withAccount(service)).then((ran) => ({ ...ran, errors: made.errors + ran.errors })));
  const other = await sandbox(t);
  await bought(t, other, await run(RUNTIMES.Bun, [join(far, "bundle", "main.js"), folder()], { ...withAccount(other), cwd: "/" }).then((ran) => ({ ...ran, errors: bundle.errors + ran.errors })));
});

test("Deno runs it with the permissions that the README names", async (t) => {
  const place = app(t, { "main.mjs": PROGRAM("hopline") });
  const service = await sandbox(t);
  const [deno] = RUNTIMES.Deno;
  const store = folder();
  const allowed = ["--allow-env", "--allow-read", `--allow-write=${store}`, "--allow-net"];
  await bought(t, service, await run(deno, ["run", "--no-prompt", ...allowed, "main.mjs", store], { cwd: place, ...withAccount(service) }));
});

/** A test of a runner: the client is made while the module is evaluated, and the core compiled by its first call. */
const SPEC = (load, expect) => `
${load}
const answer = async () => Response.json({ success: true, data: { balance: 7 } });
const fetch = typeof Response === "function" ? answer : async () => ({ status: 200, headers: new Map([["content-type", "application/json"]]), arrayBuffer: async () => new TextEncoder().encode('{"success":true,"data":{"balance":7}}').buffer });
const agent = new AgentClient({ baseUrl: "https://api.example/v1", apiKey: "key", fetch });
test("reads", async () => {
  ${expect}((await agent.getBalance()).balance).toBe(7);
  ${expect}(new ProxySettings({ host: "h", port: 1, protocol: "http", username: "u", password: "p" }).url).toBe("http://u:p@h:1");
  await agent.close();
});
`;

for (const [environment, resolved] of [["node", "node"], ["jsdom", tool.resolve("jest-environment-jsdom")]]) {
  test(`Jest in ${environment}, with nothing set`, async (t) => {
    const encoders = `globalThis.TextEncoder ??= require("node:util").TextEncoder;\n`;
    const place = app(t, { "a.test.js": `const { AgentClient, ProxySettings } = require("hopline");\n${SPEC(environment === "jsdom" ? encoders : "", "expect")}`, "package.json": "{}" });
    const { errors } = await run(process.execPath, [tool.resolve("jest/bin/jest"), "--rootDir", place, "--env", resolved, "--no-cache"], { cwd: place });
    assert.match(errors, /Tests: +1 passed, 1 total/);
  });

  test(`Vitest in ${environment}, with nothing set`, async (t) => {
    const vitest = dirname(tool.resolve("vitest/package.json"));
    const place = app(t, { "a.test.js": SPEC(`import { AgentClient, ProxySettings } from "hopline";\nimport { expect, test } from ${JSON.stringify(join(vitest, "dist/index.js"))};`, "expect"), "package.json": "{}" });
    const { out, errors } = await run(process.execPath, [join(vitest, "vitest.mjs"), "run", "--root", place, "--environment", environment === "jsdom" ? "jsdom" : "node", "--reporter=json"], { cwd: vitest });
    assert.equal(JSON.parse(out || "{}").numPassedTests, 1, out + errors);
  });
}

const WORKER = `
import { AsyncLocalStorage } from "node:async_hooks";
import { AgentClient, FolderStore, load } from "hopline";
const requests = new AsyncLocalStorage();
// While the module is evaluated there is no entropy, and nothing may be asked for.
const early = new AgentClient({ baseUrl: "/api", store: new FolderStore("records") });
const wrong = (error) => error.kind + ": " + error.message;
export default {
  fetch: (request, env) => requests.run(new URL(request.url).pathname, async () => {
    const seen = [];
    const own = (url, init) => (seen.push(requests.getStore()), fetch(url, init));
    const agent = new AgentClient({ baseUrl: env.HOPLINE_BASE_URL, apiKey: env.HOPLINE_API_KEY, fetch: own, retry: { backoffMs: 1 } });
    try {
      const open = await agent.openSession(${WANTED});
      await open.terminate();
      const none = new AgentClient({ baseUrl: env.HOPLINE_BASE_URL, apiKey: env.HOPLINE_API_KEY, store: new FolderStore("records") });
      const pools = await agent.openPool("shop", { size: 1 }).catch(wrong);
      return Response.json({ id: open.session_id, seen: [...new Set(seen)], early: await early.getBalance().catch(wrong), store: await none.createSession(${WANTED}).catch(wrong), pools });
    } catch (error) {
      return Response.json({ message: error.message, stack: error.stack });
    } finally {
      await agent.close();
    }
  }),
};
`;

test("a Worker that wrangler bundles buys in workerd, with a client for each request, in its request's context", async (t) => {
  const place = app(t, { "main.mjs": WORKER, "wrangler.json": JSON.stringify({ name: "w", main: "main.mjs", compatibility_date: "2025-01-01", compatibility_flags: ["nodejs_als"] }) });
  const wrangler = join(dirname(tool.resolve("wrangler/package.json")), "bin/wrangler.js");
  const made = await run(NODE24, [wrangler, "deploy", "--dry-run", "--outdir", "out"], { cwd: place, env: { ...process.env, WRANGLER_SEND_METRICS: "false", CI: "1", HOME: place, XDG_CONFIG_HOME: place } });
  assert.ok(existsSync(join(place, "out/main.js")), made.out + made.errors);
  const out = join(place, "out");
  const modules = ["main.js", ...readdirSync(out).filter((name) => name.endsWith(".wasm"))];
  const service = await sandbox(t);
  await service.fault({ kind: "drop_after" }, "create_session");
  const url = await worker(t, out, modules, account(service), ["nodejs_als"]);
  const told = await Promise.all(["/ann", "/bob"].map(async (path) => (await fetch(url + path)).json()));
  for (const [n, { id, seen, early, store, pools, message, stack }] of told.entries()) {
    assert.match(id ?? "", /^ses_/, `${message} ${stack}`);
    assert.deepEqual(seen, [["/ann", "/bob"][n]]);
    assert.match(early, /^invalid: client: the base URL must be absolute/);
    assert.match(store, /^store: .*there are no folders in Workers/);
    assert.match(pools, /^misuse: .*no pools in Workers/);
  }
  assert.equal((await service.state()).charges.length, 2);
});

test("`load` takes a module, bytes or a response, and says what else was given", async (t) => {
  const program = `
    import { readFileSync } from "node:fs";
    import { fileURLToPath } from "node:url";
    import { HoplineError, load, parseIpRange } from "hopline";
    const bytes = readFileSync(fileURLToPath(import.meta.resolve("hopline/core.wasm")));
    const wrong = { nothing: null, "a text": "core.wasm", "another wasm": new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]), "an answer that says no": new Response("", { status: 404 }) };
    const told = {};
    for (const [name, given] of Object.entries(wrong)) told[name] = await load(given).then(() => "taken", (error) => [error instanceof HoplineError, error.kind, error.effect, error.message].join());
    const forms = { module: () => new WebAssembly.Module(bytes), bytes: () => bytes, buffer: () => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), response: () => new Response(bytes), promise: async () => new Response(bytes) };
    await load(forms[process.argv[2]]());
    await load("nobody looks at this any more");
    console.log(JSON.stringify({ ...told, last: parseIpRange("10.0.0.0/30").last }));
  `;
  const place = app(t, { "main.mjs": program });
  const forms = ["module", "bytes", "buffer", "response", "promise"];
  for (const ran of await Promise.all(forms.map((form) => run(process.execPath, ["main.mjs", form], { cwd: place })))) {
    const { last, ...told } = JSON.parse(ran.out || "{}");
    assert.equal(last, "10.0.0.3", ran.errors);
    assert.match(told.nothing, /^true,invalid,none,load: `core` must be a WebAssembly\.Module/);
    assert.match(told["a text"], /^true,invalid,none,/);
    assert.match(told["another wasm"], /^true,unavailable,none,load: the core that was given is not the one of this version of the package; nothing was sent$/);
    assert.match(told["an answer that says no"], /^true,unavailable,none,load: the core could not be fetched \(HTTP 404\); nothing was sent$/);
  }
});

test("what belongs to a page can be made on a server, and the first call says that it is missing", async () => {
  const own = { baseUrl: "https://api.example/v1", apiKey: "key", fetch: () => assert.fail("nothing is sent") };
  const agent = new AgentClient({ ...own, store: new IndexedDBStore("records") });
  await assert.rejects(agent.createSession({ session_type: "dynamic", product_no: "p", quantity: 1 }), { kind: "store", effect: "none", message: /there is no IndexedDB here; use a FolderStore/ });
  await agent.close();
  const page = new AgentClient({ ...own, baseUrl: "/api/v1" });
  assert.equal(page.events()[Symbol.asyncIterator] !== undefined, true);
  await assert.rejects(page.getBalance(), { kind: "invalid", effect: "none", message: /the base URL must be absolute/ });
  await page.close();
  await assert.rejects(page.getBalance(), { kind: "misuse", message: /closed/ });
  assert.throws(() => page.events(), { kind: "misuse", message: /closed/ });
});
