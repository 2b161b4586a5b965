// Opens the URLs of its command line in Chromium, through at most three sessions; a page that is blocked, three times.
import { AgentClient, FolderStore } from "hopline";
import { PoolContexts } from "hopline/playwright";
import { chromium } from "playwright";

const agent = new AgentClient({ dailyCapUsd: 20, store: new FolderStore("hopline-records") });
const pool = await agent.openPool("shop", { size: 3, session_type: "dynamic", product_no: "dynamic-world", quantity: 0.5, protocol: "http" });
const browser = await chromium.launch({ executablePath: process.env.HOPLINE_CHROMIUM });
const contexts = new PoolContexts(browser, pool);

/** @param {string} url */
const visit = (url) =>
  contexts.withLease({ target: new URL(url).hostname }, async (lease, context) => {
    const page = await context.newPage();
    const response = await page.goto(url).catch((error) => console.log(url, lease.observe(error)));
    return response && lease.observe(response.status()) === "keep" ? response.status() : undefined;
  });

for (const url of process.argv.slice(2)) {
  let status;
  for (let tries = 0; tries < 3 && !status; tries += 1) status = await visit(url);
  console.log(url, status ?? "is blocked");
}
await contexts.close();
await browser.close();
await agent.close();
