// The shared vectors through the class that the built package exports.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { checkFile } from "./vectors/format.mjs";
import { run } from "./vectors/run.mjs";

const folder = process.env.HOPLINE_VECTORS;

test("every vector holds", () => {
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".json")).sort();
  const failures = [];
  const names = new Set();
  let cases = 0;
  for (const name of files) {
    const file = JSON.parse(readFileSync(join(folder, name), "utf8"));
    checkFile(file);
    for (const each of file.cases) {
      cases += 1;
      if (names.has(each.name)) failures.push(`${name}: \`${each.name}\`: another case has this name`);
      names.add(each.name);
      try {
        run(each);
      } catch (error) {
        failures.push(`${name}: \`${each.name}\`: ${error.message}`);
      }
    }
  }
  console.log(`vectors: ${cases} cases in ${files.length} files, ${failures.length} failed`);
  assert.ok(cases > 0, "no case was found");
  assert.equal(failures.length, 0, failures.join("\n"));
});

test("what a runner does not understand does not pass", () => {
  const start = { start: "a", operation: "get_balance" };
  const send = { send: "GET /billing/balance", answer: { ok: { n: 1 } } };
  run({ name: "n", script: [start, send, { complete: "a", ok: { raw: { n: 1 } } }] });
  const bad = [
    [{ starts: "a" }], [{ ...start, hurry: true }], [start], [start, send], [start, { ...send, answer: { ok: 1, colour: 1 } }],
    [start, send, { complete: "a", ok: { raw: { n: 2 } } }], [start, send, { complete: "a", error: {} }], [], [{ wait: { least: 1 } }],
  ];
  for (const script of bad) assert.throws(() => run({ name: "n", script }), undefined, JSON.stringify(script));
  assert.throws(() => checkFile({ about: "a", source: "s", cases: [] }));
});
