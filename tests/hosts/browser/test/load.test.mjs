// Every way in which the package gets into a page, and what is said when it can't.
import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { build, createServer } from "vite";
import webpack from "webpack";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { tool } from "../../node/test/lib/tools.mjs";
import { account, open, profile } from "./lib/chromium.mjs";
import { PACKAGE, policy, site } from "./lib/site.mjs";

const APP = fileURLToPath(new URL("app", import.meta.url));

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "hopline-browser-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A worker of the page buys, the page may not buy the same, and takes over when the worker is gone. */
async function works(t, url, service) {
  const page = await open(await profile(t), url);
  const client = account(service);
  const told = await page.evaluate(async ([client, wanted, options]) => {
    const bought = await new Promise((resolve) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.postMessage({ client, wanted, options });
    });
    const agent = new hopline.AgentClient({ ...client, store: new hopline.IndexedDBStore("records") });
    const busy = await agent.openSession(wanted, options).catch(({ kind }) => kind);
    worker.terminate();
    let open = busy;
    for (let tries = 0; tries < 50 && open === "busy"; tries += 1) open = await agent.openSession(wanted, options).catch(({ kind, message }) => (kind === "busy" ? kind : message));
    await agent.close();
    return { bought, busy, same: open.session_id === bought.session_id, open: String(open) };
  }, [client, WANTED, { intent: "job-17" }]);
  assert.match(told.bought.session_id ?? told.bought.error, /^ses_/);
  assert.deepEqual([told.busy, told.same], ["busy", true], told.open);
  assert.equal((await service.state()).charges.length, 1);
  assert.deepEqual(page.told.filter((line) => !/^debug: \[vite\]/.test(line)), []);
}

test("plain files in a page and in a module worker", async (t) => {
  const service = await sandbox(t);
  const url = await site(t, { csp: policy(new URL(service.agent_url).origin) });
  await works(t, `${url}/page.html`, service);
});

test("a Vite build", async (t) => {
  const [service, outDir] = [await sandbox(t), await folder(t)];
  await build({ root: APP, configFile: false, logLevel: "error", build: { outDir, emptyOutDir: true } });
  await works(t, await site(t, { csp: policy(new URL(service.agent_url).origin), folders: { "/": outDir } }), service);
});

test("Vite's own server", async (t) => {
  const [service, cacheDir] = [await sandbox(t), await folder(t)];
  const headers = { "content-security-policy": policy(new URL(service.agent_url).origin) };
  const server = await createServer({ root: APP, cacheDir, configFile: false, logLevel: "error", server: { host: "127.0.0.1", port: 0, headers } });
  t.after(() => server.close());
  await server.listen();
  await works(t, `http://127.0.0.1:${server.httpServer.address().port}/`, service);
});

test("a webpack build", async (t) => {
  const [service, path] = [await sandbox(t), await folder(t)];
  const stats = await new Promise((resolve, reject) => {
    // webpack warns of everything above 244 KiB.
    webpack({ mode: "production", performance: false, context: APP, entry: "./main.js", output: { path, filename: "main.js" } }, (error, stats) => (error ? reject(error) : resolve(stats)));
  });
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  const answers = { "/app.html": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end(readFileSync(join(APP, "index.html"))) };
  await works(t, `${await site(t, { csp: policy(new URL(service.agent_url).origin), folders: { "/": path }, answers })}/app.html`, service);
});

test("an esbuild bundle, with the core copied beside it", async (t) => {
  const [service, path] = [await sandbox(t), await folder(t)];
  await tool("esbuild").build({ absWorkingDir: APP, entryPoints: ["main.js", "worker.js"], bundle: true, minify: true, format: "esm", outdir: path, logLevel: "error" });
  cpSync(join(PACKAGE, "core.wasm"), join(path, "core.wasm"));
  const page = readFileSync(join(APP, "index.html"));
  const answers = { "/app.html": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end(page) };
  await works(t, `${await site(t, { csp: policy(new URL(service.agent_url).origin), folders: { "/": path }, answers })}/app.html`, service);
});

/** The result of the first call of a page. */
async function fails(t, options) {
  const page = await open(await profile(t), `${await site(t, options)}/page.html`);
  const told = await page.evaluate(async () => {
    const agent = new hopline.AgentClient({ baseUrl: "/api", apiKey: "canary-key" });
    const [first, second] = await Promise.allSettled([agent.getBalance(), agent.saved()]);
    await agent.close();
    const { name, kind, effect, message, cause } = first.reason;
    return { name, kind, effect, message, cause: String(cause), same: second.reason.message === message, ours: first.reason instanceof hopline.HoplineError };
  });
  assert.deepEqual([told.name, told.kind, told.effect, told.same, told.ours], ["HoplineError", "unavailable", "none", true, true]);
  assert.match(told.message, /^load: the core at `http:\S+core\.wasm` .*; nothing was sent$/);
  return { ...told, page };
}

const WASM = "/hopline/core.wasm";
const CORE = readFileSync(join(PACKAGE, "core.wasm"));

test("a core that is not there, is something else, or broke off is a clear error", async (t) => {
  const missing = await fails(t, { answers: { [WASM]: (_, response) => response.writeHead(404).end() } });
  assert.match(missing.message, /HTTP 404.*served beside the script/);
  const page = await fails(t, { answers: { [WASM]: (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>our app</p>") } });
  assert.match(page.message, /is not what was packed.*text\/html/);
  const half = await fails(t, { answers: { [WASM]: (_, response) => response.writeHead(200, { "content-type": "application/wasm" }).end(CORE.subarray(0, 10_000)) } });
  assert.match(half.message, /broke off/);
  const closed = await fails(t, { answers: { [WASM]: (request) => request.socket.destroy() } });
  assert.match(closed.message, /could not be fetched/);
});

test("a page whose policy forbids it is told which words are missing", async (t) => {
  const scripts = await fails(t, { csp: "default-src 'self'; script-src 'self'" });
  assert.match(scripts.message, /'wasm-unsafe-eval'.*script-src/);
  const connect = await fails(t, { csp: "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src https://elsewhere.example" });
  assert.match(connect.message, /connect-src/);
});

test("a browser without WebAssembly is told so", async (t) => {
  const context = await profile(t);
  await context.addInitScript(() => delete globalThis.WebAssembly);
  const page = await open(context, `${await site(t)}/page.html`);
  const told = await page.evaluate(() => new hopline.AgentClient({ baseUrl: "/api" }).getBalance().catch(({ kind, message }) => [kind, message]));
  assert.equal(told[0], "unavailable");
  assert.match(told[1], /WebAssembly is turned off/);
});

test("a server that does not know the type of the core is good enough", async (t) => {
  const service = await sandbox(t);
  for (const headers of [{}, { "content-type": "application/octet-stream" }, { "content-type": "text/plain" }]) {
    const csp = policy(new URL(service.agent_url).origin);
    const url = await site(t, { csp, answers: { [WASM]: (_, response) => response.writeHead(200, headers).end(CORE) } });
    const page = await open(await profile(t), `${url}/page.html`);
    assert.equal((await page.evaluate((client) => new hopline.AgentClient(client).getBalance(), account(service))).balance, 100);
  }
});

test("what could not be loaded is loaded by a later call of the same client", async (t) => {
  const service = await sandbox(t);
  let tries = 0;
  const answers = {
    [WASM]: (_, response) => ((tries += 1) === 1 ? response.writeHead(503).end() : response.writeHead(200, { "content-type": "application/wasm" }).end(CORE)),
  };
  const page = await open(await profile(t), `${await site(t, { csp: policy(new URL(service.agent_url).origin), answers })}/page.html`);
  const told = await page.evaluate(async (client) => {
    const agent = new hopline.AgentClient(client);
    const first = await agent.getBalance().catch(({ message }) => message);
    const second = await Promise.all([agent.getBalance(), agent.getBalance()]);
    await hopline.load();
    return [first, second.map(({ balance }) => balance)];
  }, account(service));
  assert.match(told[0], /HTTP 503/);
  assert.deepEqual([told[1], tries], [[100, 100], 2]);
});

test("wrong options are refused by the first call, and at once when the core is there", async (t) => {
  const page = await open(await profile(t), `${await site(t)}/page.html`);
  const told = await page.evaluate(async () => {
    const of = ({ name, kind, message }) => [name, kind, message];
    const agent = new hopline.AgentClient({ baseUrl: "api.example/v1" });
    const first = await agent.getBalance().catch(of);
    await agent.close();
    const closed = await agent.getBalance().catch(of);
    try {
      new hopline.AgentClient({ baseUrl: "api.example/v1" });
    } catch (error) {
      return [first, of(error), closed];
    }
  });
  assert.deepEqual(told[0], told[1]);
  assert.deepEqual(told[0].slice(0, 2), ["HoplineError", "invalid"]);
  assert.match(told[0][2], /http/);
  assert.equal(told[2][1], "misuse");
});

test("a path is one of the page's own server, where its base says, and in a worker made of a blob", async (t) => {
  const asked = [];
  const balance = (request, response) => {
    asked.push(request.url);
    response.writeHead(200, { "content-type": "application/json" }).end('{"success":true,"data":{"balance":7}}');
  };
  const html = '<!doctype html><title>Based</title><base href="/deep/er/"><script type="module" src="/page.mjs"></script>';
  const url = await site(t, {
    // In a worker made of a blob, Chromium takes the blob for `'self'`.
    csp: "connect-src 'self'",
    answers: { "/based.html": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end(html), "/deep/er/api/": balance, "/api/": balance },
  });
  const page = await open(await profile(t), `${url}/based.html`);
  const told = await page.evaluate(async (url) => {
    const read = async (baseUrl) => {
      const agent = new hopline.AgentClient({ baseUrl });
      const { balance } = await agent.getBalance();
      await agent.close();
      return balance;
    };
    const script = `import { AgentClient } from "${url}/hopline/web.mjs";
      new AgentClient({ baseUrl: "/api/v1" }).getBalance().then(({ balance }) => self.postMessage(balance), ({ message }) => self.postMessage(message));`;
    const inPage = [await read("./api/v1"), await read("/api/v1")];
    const worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })), { type: "module" });
    const inWorker = new Promise((resolve) => Object.assign(worker, { onmessage: ({ data }) => resolve(data), onerror: ({ message }) => resolve(message ?? "failed") }));
    return [...inPage, await inWorker];
  }, url);
  assert.deepEqual(told, [7, 7, 7]);
  assert.deepEqual(asked.map((path) => path.split("/v1")[0]), ["/deep/er/api", "/api", "/api"]);
});
