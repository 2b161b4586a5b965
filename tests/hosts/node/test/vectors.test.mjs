// The shared vectors through the class that the built package exports.
import assert from "node:assert/strict";
import { test } from "node:test";

import { files } from "./lib/vectors.mjs";
import { passedWrongly, runAll } from "./vectors/all.mjs";
import { checkFile } from "./vectors/format.mjs";

test("every vector holds", () => {
  const { cases, failures, text } = runAll(files());
  console.log(text);
  assert.ok(cases > 0, "no case was found");
  assert.equal(failures.length, 0, failures.join("\n"));
});

test("what a runner does not understand does not pass", () => {
  assert.deepEqual(passedWrongly(), []);
  assert.throws(() => checkFile({ about: "a", source: "s", cases: [] }));
});
