// The browser's programs of the package's README, as printed: bundled twice, and as plain files.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { build } from "vite";
import webpack from "webpack";

import { sandbox } from "../../node/test/lib/sandbox.mjs";
import { profile, stage } from "./lib/chromium.mjs";
import { PACKAGE, site } from "./lib/site.mjs";

const text = readFileSync(join(PACKAGE, "README.md"), "utf8");
const printed = [...text.matchAll(/^```(?:js\n\/\/ (\S+\.js)|html\n<!-- (\S+) -->)\n([^]*?)^```$/gm)];
const FILES = Object.fromEntries(printed.map(([, script, page, code]) => [script ?? page, code]));
const [, csp] = /^ {4}(default-src .*)$/m.exec(text);

test("the README has these programs", () => assert.deepEqual(Object.keys(FILES).sort(), ["index.html", "main.js", "worker.js"]));

/** A folder with the programs, where the package is found. */
function folder(t, change = (code) => code) {
  const place = join(dirname(PACKAGE), "..", "readme");
  mkdirSync(place, { recursive: true });
  const path = mkdtempSync(join(place, "app-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, code] of Object.entries(FILES)) writeFileSync(join(path, name), change(code));
  return path;
}

/** A server of one's own: it has the key, and passes on what it is asked. */
const backend = ({ agent_url, api_key }) => async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { "idempotency-key": key, "content-type": type } = request.headers;
  const headers = { "x-api-key": api_key, ...(key && { "idempotency-key": key }), ...(type && { "content-type": type }) };
  const answer = await fetch(agent_url + request.url.slice("/api/v1".length), { method: request.method, headers, body: chunks.length > 0 ? Buffer.concat(chunks) : undefined });
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") }).end(Buffer.from(await answer.arrayBuffer()));
};

async function works(t, root) {
  const service = await sandbox(t);
  const url = await site(t, { csp, folders: { "/": root }, answers: { "/api/v1/": backend(service) } });
  const page = await (await profile(t)).newPage();
  const told = [];
  page.on("console", (message) => message.location().url.endsWith("/favicon.ico") || told.push(message.text()));
  await page.goto(`${url}/index.html`);
  const shows = (what) => page.waitForFunction((what) => new RegExp(what).test(document.querySelector("output").textContent), what);
  await shows("^100 USD$");
  for (let n = 0; n < 2; n += 1) {
    await page.evaluate(() => (document.querySelector("output").textContent = ""));
    await page.click("button");
    await shows("^ses_");
  }
  assert.equal((await service.state()).charges.length, 1);
  assert.deepEqual(told, []);
}

test("the README's page works as plain files", (t) => {
  const path = folder(t, (code) => code.replace('from "hopline"', 'from "./hopline/web.mjs"'));
  return works(t, path);
});

test("the README's page works with Vite", async (t) => {
  const root = folder(t);
  await build({ root, configFile: false, logLevel: "error" });
  await works(t, join(root, "dist"));
});

test("the README's page works with webpack", async (t) => {
  const root = folder(t);
  const path = join(root, "dist");
  const config = { mode: "production", performance: false, context: root, entry: "./main.js", output: { path, filename: "main.js" } };
  const stats = await new Promise((resolve, reject) => webpack(config, (error, stats) => (error ? reject(error) : resolve(stats))));
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  writeFileSync(join(path, "index.html"), FILES["index.html"]);
  await works(t, path);
});

test("the README's longest program runs in a page too, with a store of the browser", async (t) => {
  const [, code] = /^```js\n\/\/ account\.mjs\n([^]*?)^```$/m.exec(text);
  // A page has no environment, and keeps its records in a database.
  const program = code
    .replace('from "hopline"', 'from "/hopline/web.mjs"')
    .replace("FolderStore", "IndexedDBStore")
    .replace("new AgentClient({", "new AgentClient({ ...service,")
    .replace("new FolderStore(", "new IndexedDBStore(");
  const service = await sandbox(t);
  const answers = { "/account.mjs": (_, response) => response.writeHead(200, { "content-type": "text/javascript" }).end(program) };
  const { page } = await stage(t, service, { answers });
  // Somebody pays what it orders.
  page.on("console", async (message) => {
    if (!message.text().startsWith("pay ")) return;
    for (const { order_id } of (await service.state()).orders) await service.control("pay", { order_id });
  });
  await page.evaluate(() => import("/account.mjs"));
  assert.match(page.told.join("\n"), /the budget of [^]*log: 0\.5 GB of dynamic-world cost 2 USD\nlog: healthy\nlog: pay [^]*log: ready: 108 USD\nlog: recharge, charge$/);
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["terminated"]]);
});
