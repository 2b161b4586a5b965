// The exports of the package are those that its types document, under the names that they give it, and nothing else.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { createContext, runInContext } from "node:vm";

import * as hopline from "hopline";

import { WANTED, folder as emptyFolder, sandbox } from "./lib/sandbox.mjs";

const require = createRequire(import.meta.url);
const folder = dirname(require.resolve("hopline"));
/** By entry: what it exports. */
const ENTRIES = {
  import: hopline,
  require: require("hopline"),
  "import, with the core within": await import("hopline/inline"),
  "require, with the core within": require("hopline/inline"),
  "a page": await import(pathToFileURL(join(folder, "web.mjs"))),
  "a page, with the core within": await import(pathToFileURL(join(folder, "inline.mjs"))),
};

test("the package exports what its types document, and nothing else", () => {
  const types = readFileSync(join(folder, "hopline.d.mts"), "utf8");
  const documented = new Set([...types.matchAll(/^export (?:declare )?(?:abstract )?(?:class|function|const|let|enum) (\w+)/gm)].map(([, name]) => name));
  for (const [entry, exported] of Object.entries(ENTRIES)) assert.deepEqual(Object.keys(exported).sort(), [...documented].sort(), entry);
});

test("no other file of the package can be imported", async () => {
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  assert.deepEqual(Object.keys(exports), [".", "./inline", "./opentelemetry", "./backend", "./crawlee", "./playwright", "./postgres", "./core.wasm", "./package.json"]);
  for (const path of ["node.cjs", "node.wasm", "web.mjs", "edge.mjs"]) await assert.rejects(import(`hopline/${path}`), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" });
});

test("each class has its own name, in what a page loads, too", () => {
  for (const [entry, exported] of Object.entries(ENTRIES)) {
    const classes = Object.entries(exported).filter(([, value]) => typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value)));
    assert.deepEqual(classes.map(([, value]) => value.name), classes.map(([name]) => name), entry);
    assert.ok(classes.length > 8, entry);
  }
  const { AgentClient, HoplineError } = hopline;
  assert.match(inspect(new AgentClient({ baseUrl: "https://api.example/v1" })), /^AgentClient \{/);
  const error = (() => {
    try {
      new AgentClient(null);
    } catch (error) {
      return error;
    }
  })();
  assert.ok(error instanceof HoplineError);
  assert.deepEqual([error.name, error.constructor.name], ["HoplineError", "HoplineError"]);
  assert.match(inspect(error), /^HoplineError: /);
});

test("the package works where a test runner makes the environment, as Jest with jsdom: objects of another realm, no TextDecoder, a browser's timers", async (t) => {
  const service = await sandbox(t);
  const [setTimeout, setInterval] = [globalThis.setTimeout, globalThis.setInterval].map((set) => (...given) => Number(set(...given)));
  const { AbortController, URL, clearInterval, clearTimeout, console, crypto, performance, process } = globalThis;
  const context = createContext({ AbortController, URL, clearInterval, clearTimeout, console, crypto, performance, process, setInterval, setTimeout });
  const file = join(folder, "node.cjs");
  const module = { exports: {} };
  runInContext(`(function (module, exports, require, __filename, __dirname) {${readFileSync(file, "utf8")}\n})`, context)(module, module.exports, require, file, folder);
  const { AgentClient, FolderStore } = module.exports;
  const agent = new AgentClient({ apiKey: service.api_key, baseUrl: service.agent_url, store: new FolderStore(emptyFolder()), fetch });
  const { session_id } = await agent.openSession(WANTED, { intent: "job-17", headers: new Headers({ "x-tenant": "a" }) });
  assert.equal((await agent.saved()).map((entry) => `${entry.session_id} ${entry.intent}`).join(), `${session_id} job-17`);
  await agent.close();
  const nowhere = new AgentClient({ apiKey: service.api_key, baseUrl: service.agent_url, store: new FolderStore("/proc/x/records"), fetch });
  const error = await nowhere.createSession(WANTED).catch((error) => error);
  assert.deepEqual([error.kind, error.effect, /ENOENT/.test(error.message)], ["store", "none", true], error.message);
  await nowhere.close();
});
