// The costs of Hopline in Chromium, beside others: `cargo xtask bench browser` runs it and writes its lines into a table.
//
// node bench.mjs BODY [--once]
//
// BODY is the list that all hosts read. With `--once` each work is done once, to see that it comes to its result.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { LAUNCH, open } from "./test/lib/page.mjs";
import { PACKAGE, site } from "./test/lib/site.mjs";

const ends = [];
try {
  const folders = { "/bench/": fileURLToPath(new URL(".", import.meta.url)) };
  const url = await site({ after: (end) => ends.push(end) }, { folders });
  const browser = await chromium.launch(LAUNCH);
  ends.push(() => browser.close());
  const page = await open(await browser.newContext(), `${url}/page.html`);
  const measured = await page.evaluate(measure, [readFileSync(process.argv[2], "utf8"), process.argv.includes("--once")]);
  const { version } = JSON.parse(readFileSync(`${PACKAGE}/package.json`, "utf8"));
  console.log(JSON.stringify({ versions: { Chromium: browser.version(), hopline: version }, rows: measured }));
} finally {
  for (const end of ends.reverse()) await end();
}

/** Runs in the page. */
async function measure([list, once]) {
  const { account, answering, purchases, rounds, rows } = await import("/bench/rounds.mjs");
  const { AgentClient, IndexedDBStore } = globalThis.hopline;
  const check = (items) => {
    if (items.length !== 100) throw new Error("it is not the list");
  };
  const calls = async (work, body, own, bare, most) => {
    const fetch = answering(body);
    const agent = new AgentClient({ ...account, fetch });
    const times = await rounds([() => own(agent), async () => bare((await (await fetch()).json()).data)], once);
    await agent.close();
    return rows(work, times, [["`fetch` + `json()`, unchecked", most]]);
  };
  return [
    ...(await calls("a list of 100, the whole call", list, async (agent) => check((await agent.listProducts()).items), (data) => check(data.items), 1.6)),
    ...(await calls("a small call", '{"success":true,"data":{"balance":12.50}}', (agent) => agent.getBalance(), (data) => data.balance, 2)),
    ...(await purchases(AgentClient, "an IndexedDB", (index) => new IndexedDBStore(`bench-${index}`), once)),
  ];
}
