// The shared vectors in a page, by the same runner as in Node, where an import map finds the package.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { files } from "../../node/test/lib/vectors.mjs";
import { open, profile } from "./lib/chromium.mjs";
import { policy, site } from "./lib/site.mjs";

const MAP = JSON.stringify({ imports: { hopline: "/hopline/web.mjs" } });
const HTML = `<!doctype html><title>Vectors</title><script type="importmap">${MAP}</script><script type="module" src="/vectors.mjs"></script>`;

test("every vector holds in a page", { timeout: 120_000 }, async (t) => {
  // An import map can only be written into the page, so the policy names it by its digest.
  const csp = policy().replace("script-src", `script-src 'sha256-${createHash("sha256").update(MAP).digest("base64")}'`);
  const url = await site(t, {
    csp,
    folders: { "/runner/": fileURLToPath(new URL("../../node/test", import.meta.url)) },
    answers: { "/map.html": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end(HTML) },
  });
  const page = await open(await profile(t), `${url}/map.html`);
  const all = files();
  const { cases, failures, text } = await page.evaluate((files) => vectors.runAll(files), all);
  console.log(text);
  assert.equal(cases, all.reduce((sum, [, file]) => sum + file.cases.length, 0));
  assert.ok(cases > 0);
  assert.equal(failures.length, 0, failures.join("\n"));
  assert.deepEqual(await page.evaluate(() => vectors.passedWrongly()), []);
});
