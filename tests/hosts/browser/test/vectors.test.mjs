// The shared vectors in a page, by the same runner as in Node; and JSON texts that nobody here wrote.
import assert from "node:assert/strict";
import { test } from "node:test";

import { texts } from "../../node/test/lib/external.mjs";
import { files } from "../../node/test/lib/vectors.mjs";
import { runner } from "./lib/runner.mjs";

test("every vector holds in a page", { timeout: 120_000 }, async (t) => {
  const page = await runner(t);
  // A page has no pools.
  const all = files().filter(([name]) => !name.startsWith("pools/"));
  const { cases, failures, text } = await page.evaluate((files) => vectors.runAll(files), all);
  console.log(text);
  assert.equal(cases, all.reduce((sum, [, file]) => sum + file.cases.length, 0));
  assert.ok(cases > 0);
  assert.equal(failures.length, 0, failures.join("\n"));
  assert.deepEqual(await page.evaluate(() => vectors.passedWrongly()), []);
});

test("every JSON text is data or an error for a page just as it is for the core", { timeout: 120_000 }, async (t) => {
  const all = texts();
  if (!all) return t.skip("there is no ../shared/external/json-test-suite");
  const page = await runner(t);
  const { counted, wrong } = await page.evaluate((files) => judge(files), all);
  console.log(`${counted.y} accepted, ${counted.n} refused, ${counted.i} either`);
  assert.deepEqual(wrong, []);
  assert.ok(Object.values(counted).every((count) => count > 0));
  assert.deepEqual(page.told, []);
});
