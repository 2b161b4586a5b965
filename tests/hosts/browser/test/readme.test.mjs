// The browser's programs of the site's pages, as printed: bundled twice, and as plain files.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { build } from "vite";
import webpack from "webpack";

import { sandbox } from "../../node/test/lib/sandbox.mjs";
import { profile, stage } from "./lib/chromium.mjs";
import { PACKAGE, site } from "./lib/site.mjs";

/** A file of the site's pages. */
const kept = (name) => readFileSync(join(process.env.HOPLINE_DOCS, name), "utf8");
const FILES = Object.fromEntries(["index.html", "main.js", "worker.js", "buy.html", "buy.js"].map((name) => [name, kept(`programs/js/${name}`)]));
const RELAY = kept("programs/js/relay.mjs");
const [, csp] = /^ {4}(default-src .*)$/m.exec(kept("browser.md"));

/** A folder with the programs, where the package is found. */
function folder(t, change = (code) => code) {
  const place = join(dirname(PACKAGE), "..", "readme");
  mkdirSync(place, { recursive: true });
  const path = mkdtempSync(join(place, "app-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, code] of Object.entries(FILES)) writeFileSync(join(path, name), change(code));
  return path;
}

/** The pages' relay as a process, and what passes requests of the page's own server on to it. */
async function relay(t, { agent_url, api_key }) {
  const path = join(folder(t), "relay.mjs");
  writeFileSync(path, RELAY);
  const child = spawn(process.execPath, [path], { env: { ...process.env, HOPLINE_BASE_URL: agent_url, HOPLINE_API_KEY: api_key, PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [line] = await once(child.stdout, "data");
  const port = /port: (\d+)/.exec(line)[1];
  return (given, response) => {
    const passed = request({ host: "127.0.0.1", port, method: given.method, path: given.url, headers: given.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.once("error", () => response.destroy());
    given.pipe(passed);
  };
}

async function works(t, root) {
  const service = await sandbox(t);
  const url = await site(t, { csp, folders: { "/": root }, answers: { "/api/v1/": await relay(t, service) } });
  // The first answer is lost on its way.
  await service.fault({ kind: "drop_after" }, "create_session");
  const page = await (await profile(t)).newPage();
  const told = [];
  page.on("console", (message) => message.location().url.endsWith("/favicon.ico") || told.push(message.text()));
  await page.goto(`${url}/index.html`);
  const shows = (what) => page.waitForFunction((what) => new RegExp(what).test(document.querySelector("output").textContent), what);
  await shows("^100 USD$");
  const buy = async () => {
    await page.evaluate(() => (document.querySelector("output").textContent = ""));
    await page.click("button");
    await shows("^ses_");
  };
  await buy();
  await buy();
  await page.reload();
  await shows("^[0-9.]+ USD$");
  await buy();
  assert.equal((await service.state()).charges.length, 1);
  // A browser tells of each answer that is an error.
  assert.deepEqual(told.filter((line) => !line.includes("502 (Bad Gateway)")), []);
}

test("the pages' page works as plain files", (t) => {
  const path = folder(t, (code) => code.replace('from "hopline"', 'from "./hopline/web.mjs"'));
  return works(t, path);
});

// Each is held at the next step, so that it is closed before that: a request to end its session does not end it for an hour.
for (const [operation, then, kind] of [["list_products", "create_session", "delay"], ["create_session", "get_session", "delay"], ["get_session", "terminate_session", "in_progress"]]) {
  test(`the pages' shortest page goes on after it was closed at ${operation}, and buys again today and tomorrow`, async (t) => {
    const path = folder(t, (code) => code.replace('from "hopline"', 'from "./hopline/web.mjs"'));
    const service = await sandbox(t);
    const url = await site(t, { csp, folders: { "/": path }, answers: { "/api/v1/": await relay(t, service) } });
    const context = await profile(t);
    const opened = async () => {
      const page = await context.newPage();
      await page.goto(`${url}/buy.html`);
      await page.click("text=Buy");
      return page;
    };
    const comesTo = async (what) => {
      while (!what(await service.state())) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await service.fault({ kind, ms: 3_600_000 }, then);
    const closed = await opened();
    if (then === "terminate_session") {
      await closed.getByText("USD").waitFor();
      await closed.click("text=End");
      // A request that comes after the faults are gone would end the session.
      await comesTo(({ in_progress }) => in_progress > 0);
    }
    await comesTo(({ executions }) => executions[operation] > 0);
    await closed.close();
    await service.forgetFaults();
    for (let charges = 1; charges <= 3; charges += 1) {
      const page = await opened();
      await page.getByText("USD").waitFor();
      assert.match(await page.textContent("output"), /^127\.0\.0\.1:\d+ for 2 USD$/);
      await page.click("text=End");
      await comesTo(({ sessions }) => sessions.at(-1).status === "terminated");
      assert.equal((await service.state()).charges.length, charges);
      await page.close();
      if (charges === 2) await service.control("clock", { advance_ms: 86_400_000 });
    }
  });
}

test("people who share a browser do not share what they buy from the pages' page", async (t) => {
  const path = folder(t, (code) => code.replace('from "hopline"', 'from "./hopline/web.mjs"'));
  writeFileSync(join(path, "ben.html"), FILES["index.html"].replace("ann", "ben"));
  const service = await sandbox(t);
  const url = await site(t, { csp, folders: { "/": path }, answers: { "/api/v1/": await relay(t, service) } });
  const context = await profile(t);
  const bought = [];
  for (const name of ["index.html", "ben.html"]) {
    const page = await context.newPage();
    await page.goto(`${url}/${name}`);
    await page.getByText("USD").waitFor();
    await page.click("button");
    await page.getByText("ses_").waitFor();
    bought.push(await page.textContent("output"));
  }
  assert.notEqual(bought[0], bought[1]);
  assert.equal((await service.state()).charges.length, 2);
});

test("the pages' page works with Vite", async (t) => {
  const root = folder(t);
  await build({ root, configFile: false, logLevel: "error" });
  await works(t, join(root, "dist"));
});

test("the pages' page works with webpack", async (t) => {
  const root = folder(t);
  const path = join(root, "dist");
  const config = { mode: "production", performance: false, context: root, entry: "./main.js", output: { path, filename: "main.js" } };
  const stats = await new Promise((resolve, reject) => webpack(config, (error, stats) => (error ? reject(error) : resolve(stats))));
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  writeFileSync(join(path, "index.html"), FILES["index.html"]);
  await works(t, path);
});

test("the pages' longest program runs in a page too, with a store of the browser", async (t) => {
  const code = kept("programs/js/program.mjs");
  // A page has no environment, and keeps its records in a database.
  const program = code
    .replace('from "hopline"', 'from "/hopline/web.mjs"')
    .replace("FolderStore", "IndexedDBStore")
    .replace("new AgentClient({", "new AgentClient({ ...service,")
    .replace("new FolderStore(", "new IndexedDBStore(");
  const service = await sandbox(t);
  const answers = { "/program.mjs": (_, response) => response.writeHead(200, { "content-type": "text/javascript" }).end(program) };
  const { page } = await stage(t, service, { answers });
  await page.evaluate(() => import("/program.mjs"));
  assert.match(page.told.join("\n"), /0\.5 GB of dynamic-world cost 2 USD\nlog: ses_\w+ is a proxy at 127\.0\.0\.1:\d+\nlog: its health: .+$/);
  const { charges, sessions } = await service.state();
  assert.deepEqual([charges.length, sessions.map(({ status }) => status)], [1, ["terminated"]]);
});
