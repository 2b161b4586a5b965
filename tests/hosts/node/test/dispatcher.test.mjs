// `lease.dispatcher()` with each `undici` that the package takes, and with the `fetch` that Node brings along.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { folder, program, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

const packageOf = (name) => dirname(tool.resolve(`${name}/package.json`));
const HERE = dirname(createRequire(import.meta.url).resolve("hopline/package.json"));
/** Node 24 is there on Linux only. */
const NODE24 = join(dirname(packageOf("undici8")), "node24/bin/node");

/** A project with the package and one `undici`, or none. */
function project(undici) {
  const path = folder();
  const modules = join(path, "node_modules");
  mkdirSync(modules);
  cpSync(HERE, join(modules, "hopline"), { recursive: true });
  if (undici) cpSync(packageOf(undici), join(modules, "undici"), { recursive: true });
  cpSync(fileURLToPath(new URL("programs/dispatched.mjs", import.meta.url)), join(path, "dispatched.mjs"));
  return { path, modules };
}

async function fetched(t, { path }, node) {
  const service = await sandbox(t, "--session-limit", "100");
  const environment = { HOPLINE_API_KEY: service.api_key, HOPLINE_BASE_URL: service.agent_url, TARGET: service.target_url, NODE_PATH: "" };
  const { out, errors } = await program(join(path, "dispatched.mjs"), environment, [], path, node).ended;
  return JSON.parse(out || JSON.stringify(errors));
}

for (const [name, node] of [["this Node", process.execPath], ["Node 24", NODE24]]) {
  for (const undici of ["undici6", "undici", "undici8"]) {
    const skip = existsSync(node) ? false : "it is not here";
    test(`a page through a lease, by ${undici} on ${name}`, { skip, timeout: 60_000 }, async (t) => {
      const told = await fetched(t, project(undici), node);
      const isTooNew = undici === "undici8" && node === process.execPath && Number(process.versions.node.split(".")[0]) < 22;
      if (!isTooNew) return assert.deepEqual(told, { node: [200, "keep"], undici: [200, "keep"] });
      assert.equal(told.node[0], "misuse");
      assert.match(told.node[1], /the package `undici` is there, but could not be loaded by Node \d+\.\d+\.\d+: .*; install a version of it for this Node/);
    });
  }
}

test("without `undici`, or with one that breaks, a lease says which it is", { timeout: 60_000 }, async (t) => {
  const none = await fetched(t, project(undefined));
  assert.match(none.node[1], /the package `undici` is needed for it; install it beside this one/);
  const broken = project(undefined);
  mkdirSync(join(broken.modules, "undici"));
  writeFileSync(join(broken.modules, "undici/index.js"), 'require("not-there");');
  assert.match((await fetched(t, broken)).node[1], /`undici` is there, but could not be loaded by Node .*not-there/);
});
