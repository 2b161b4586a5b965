// The programs of the package's README, as printed.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { program, sandbox } from "./lib/sandbox.mjs";

const text = readFileSync(join(dirname(createRequire(import.meta.url).resolve("hopline")), "README.md"), "utf8");
const programs = [...text.matchAll(/^```js\n\/\/ (\S+\.[cm]js)\n([^]*?)^```$/gm)].map(([, name, code]) => [name, code]);
const SAYS = {
  "first.mjs": /^dynamic-world: [\d.]+ USD a GB$/im,
  "balance.cjs": /^100 USD$/m,
  "program.mjs": /^ses_\w+: a socks5 proxy at 127\.0\.0\.1:\d+, with a login\nthe balance is now [\d.]+ USD$/m,
  "account.mjs": /^the budget of \S+: \{[^]*daily[^]*\n\d+ dynamic products\n0\.5 GB of dynamic-world cost 2 USD\nhealthy\npay [\d.]+ USDT to \w+\nready: 108 USD\nrecharge, charge$/m,
  "reseller.mjs": /^static-us costs [\d.]+ a month\norder ORD-\w+ is ready\na proxy at 127\.\d+\.\d+\.\d+:\d+\n(?:renewal|purchase) [-\d.]+\n(?:renewal|purchase) [-\d.]+$/m,
};

const environment = ({ api_key, agent_url, username, password, backend_url }) => ({
  HOPLINE_API_KEY: api_key,
  HOPLINE_BASE_URL: agent_url,
  HOPLINE_USERNAME: username,
  HOPLINE_PASSWORD: password,
  HOPLINE_BACKEND_URL: backend_url,
});

test("the README has these programs", () => assert.deepEqual(programs.map(([name]) => name), Object.keys(SAYS)));

for (const [name, code] of programs) {
  test(`the README's ${name} runs as printed`, async (t) => {
    const service = await sandbox(t);
    writeFileSync(fileURLToPath(new URL(`programs/${name}`, import.meta.url)), code);
    const run = program(name, environment(service));
    // Somebody pays what it orders.
    run.child.stdout.on("data", async (text) => {
      if (!String(text).includes("pay ")) return;
      for (const { order_id } of (await service.state()).orders) await service.control("pay", { order_id });
    });
    const { code: ended, out, errors } = await run.ended;
    assert.deepEqual([ended, errors], [0, ""]);
    assert.match(out, SAYS[name]);
    assert.equal((await service.state()).charges.length, ["program.mjs", "account.mjs"].includes(name) ? 1 : 0);
  });
}
