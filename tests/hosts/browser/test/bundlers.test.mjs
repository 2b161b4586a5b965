// The package through more tools that pages and their servers are made with: esbuild, Rollup, webpack for a server, and Next.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { nodeResolve } from "@rollup/plugin-node-resolve";
import { rollup } from "rollup";
import { createServer } from "vite";
import webpack from "webpack";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { tool } from "../../node/test/lib/tools.mjs";
import { account, open, profile } from "./lib/chromium.mjs";
import { PACKAGE, policy, site } from "./lib/site.mjs";

const require = createRequire(import.meta.url);

/** A folder beside the tests, from where the package is found. */
function folder(t, beside = dirname(fileURLToPath(import.meta.url))) {
  const place = mkdtempSync(join(beside, "hopline-bundled-"));
  t.after(() => rmSync(place, { recursive: true, force: true }));
  return place;
}

const ENTRY = (from) => `import * as hopline from "${from}";\nglobalThis.hopline = hopline;\n`;

/** A page with a bundle, on its own. */
async function page(t, service, path, type) {
  const html = `<!doctype html><title>Bundled</title><script ${type === "module" ? 'type="module"' : "defer"} src="/main.js"></script>`;
  const answers = { "/app.html": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end(html) };
  const url = await site(t, { csp: policy(new URL(service.agent_url).origin), folders: { "/": path }, answers });
  return open(await profile(t), `${url}/app.html`);
}

const reads = (page, service) =>
  page.evaluate(async (client) => {
    const agent = new hopline.AgentClient({ ...client, store: new hopline.IndexedDBStore("records") });
    try {
      return `${(await agent.getBalance()).balance} ${(await agent.saved()).length}`;
    } catch ({ kind, effect, message }) {
      return `${kind} ${effect} ${message}`;
    } finally {
      await agent.close();
    }
  }, account(service));

const BUNDLERS = {
  esbuild: {
    async module(place, main, outdir) {
      const { warnings } = await tool("esbuild").build({ absWorkingDir: place, entryPoints: [main], bundle: true, minify: true, format: "esm", outdir, entryNames: "main", logLevel: "silent" });
      assert.deepEqual(warnings, []);
    },
    async script(place, main, outdir) {
      await tool("esbuild").build({ absWorkingDir: place, entryPoints: [main], bundle: true, minify: true, format: "iife", outdir, entryNames: "main", logLevel: "silent" });
    },
  },
  Rollup: {
    async module(place, main, dir) {
      const bundle = await rollup({ input: join(place, main), plugins: [nodeResolve({ browser: true })], onwarn: ({ message }) => assert.fail(message) });
      await bundle.write({ dir, format: "es", entryFileNames: "main.js" });
    },
    async script(place, main, dir) {
      const bundle = await rollup({ input: join(place, main), plugins: [nodeResolve({ browser: true })], onwarn: ({ message }) => assert.fail(message) });
      await bundle.write({ dir, format: "iife", inlineDynamicImports: true, entryFileNames: "main.js" });
    },
  },
};

for (const [name, formats] of Object.entries(BUNDLERS)) {
  for (const [type, make] of Object.entries(formats)) {
    test(`${name}, a ${type}: without the core it says what to do, and with it within or beside it works`, async (t) => {
      const [service, place] = [await sandbox(t), folder(t)];
      for (const [main, from] of [["beside.js", "hopline"], ["within.js", "hopline/inline"]]) writeFileSync(join(place, main), ENTRY(from));
      const [beside, within] = [folder(t, tmpdir()), folder(t, tmpdir())];
      await make(place, "beside.js", beside);
      await make(place, "within.js", within);
      assert.match(await reads(await page(t, service, beside, type), service), /^unavailable none load: the core .*copy it there from the package, or import `hopline\/inline`/);
      assert.equal(await reads(await page(t, service, within, type), service), "100 0");
      cpSync(join(PACKAGE, "core.wasm"), join(beside, "core.wasm"));
      // A script of esbuild's does not know where it is.
      if (type === "module" || name === "Rollup") assert.equal(await reads(await page(t, service, beside, type), service), "100 0");
    });
  }
}

test("webpack for a server puts the core beside the bundle", async (t) => {
  const [service, place, path] = [await sandbox(t), folder(t), folder(t, tmpdir())];
  const program = `import { AgentClient } from "hopline";
    const agent = new AgentClient();
    agent.getBalance().then(({ balance }) => console.log(balance), ({ message }) => console.log(message)).finally(() => agent.close());`;
  writeFileSync(join(place, "main.mjs"), program);
  const stats = await new Promise((resolve, reject) => {
    webpack({ mode: "production", target: "node", context: place, entry: "./main.mjs", externals: { undici: "commonjs undici" }, output: { path, filename: "main.cjs" } }, (error, stats) => (error ? reject(error) : resolve(stats)));
  });
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  const { stdout } = await promisify(execFile)(process.execPath, [join(path, "main.cjs")], { env: { ...process.env, HOPLINE_BASE_URL: service.agent_url, HOPLINE_API_KEY: service.api_key }, timeout: 60_000 });
  assert.equal(stdout.trim(), "100");
});

test("Next: a page, a server component, the relay as a route, and an edge route", async (t) => {
  const [service, place] = [await sandbox(t), folder(t)];
  cpSync(fileURLToPath(new URL("next", import.meta.url)), place, { recursive: true });
  const next = require.resolve("next/dist/bin/next");
  const environment = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
  for (const name of ["HOPLINE_BASE_URL", "HOPLINE_API_KEY"]) delete environment[name];
  await promisify(execFile)(process.execPath, [next, "build"], { cwd: place, env: environment, timeout: 150_000 }).catch((error) => assert.fail(`${error.stdout}\n${error.stderr}`));
  const env = { ...environment, HOPLINE_BASE_URL: service.agent_url, HOPLINE_API_KEY: service.api_key };
  const child = spawn(process.execPath, [next, "start", "--port", "0", "--hostname", "127.0.0.1"], { cwd: place, env, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const url = await new Promise((resolve, reject) => {
    let found;
    createInterface(child.stdout).on("line", (line) => {
      found ??= /Local: +(http:\S+)/.exec(line)?.[1];
      if (/Ready in/.test(line)) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`next start ended with ${code}`)));
  });
  assert.deepEqual(await (await fetch(`${url}/edge`)).json(), { balance: 100 });
  assert.match(await (await fetch(`${url}/server`)).text(), /<output>100 USD<\/output>/);
  // The text that the server rendered, before the page's own script ran.
  assert.match(await (await fetch(url)).text(), /<output>nothing yet<\/output>/);
  const context = await profile(t);
  const shown = await context.newPage();
  await shown.goto(url);
  await shown.waitForFunction(() => document.querySelector("output").textContent !== "nothing yet");
  assert.match(await shown.textContent("output"), /^ses_/);
  assert.equal((await service.state()).charges.length, 1);
});

test("Vite's hot reload: the client of the new module takes over from that of the old one", async (t) => {
  const [service, place, cacheDir] = [await sandbox(t), folder(t), folder(t, tmpdir())];
  const module = (n) => `
    import { AgentClient, IndexedDBStore } from "hopline";
    const agent = new AgentClient({ ...${JSON.stringify(account(service))}, store: new IndexedDBStore("records") });
    globalThis.agents = [...(globalThis.agents ?? []), agent];
    globalThis.hopline = ${n};
    import.meta.hot.accept();
  `;
  writeFileSync(join(place, "index.html"), '<!doctype html><title>Hot</title><script type="module" src="./main.js"></script>');
  writeFileSync(join(place, "main.js"), module(1));
  const server = await createServer({ root: place, cacheDir, configFile: false, logLevel: "error", optimizeDeps: { include: ["hopline"] }, server: { host: "127.0.0.1", port: 0 } });
  t.after(() => server.close());
  await server.listen();
  const page = await open(await profile(t), `http://127.0.0.1:${server.httpServer.address().port}/`);
  const opens = (n) => page.evaluate(([n, wanted]) => agents[n].openSession(wanted, { intent: "job-17" }).then(({ session_id }) => session_id, ({ kind, message }) => `${kind} ${message}`), [n, WANTED]);
  const id = await opens(0);
  assert.match(id, /^ses_/);
  writeFileSync(join(place, "main.js"), module(2));
  await page.waitForFunction(() => hopline === 2);
  assert.equal(await opens(1), id);
  assert.match(await opens(0), /^misuse .*closed/);
  assert.deepEqual([await page.evaluate(() => agents.length), (await service.state()).charges.length], [2, 1]);
});
