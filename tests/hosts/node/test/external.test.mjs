// JSON texts that nobody here wrote; where they are missing this test says so.
import assert from "node:assert/strict";
import { test } from "node:test";

import { texts } from "./lib/external.mjs";
import { judge } from "./vectors/judge.mjs";

test("every JSON text is data or an error for the caller just as it is for the core", async (t) => {
  const files = texts();
  if (!files) return t.skip("there is no ../shared/external/json-test-suite");
  const { counted, wrong } = await judge(files);
  console.log(`${counted.y} accepted, ${counted.n} refused, ${counted.i} either`);
  assert.deepEqual(wrong, []);
  assert.ok(Object.values(counted).every((count) => count > 0));
});
