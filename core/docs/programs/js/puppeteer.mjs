// Opens the URLs of its command line in Chromium by Puppeteer, each through a session of a pool, which may speak SOCKS5.
import { AgentClient, FolderStore } from "hopline";
import puppeteer from "puppeteer-core"; // or "puppeteer", which brings its own Chromium

const agent = new AgentClient({ dailyCapUsd: 20, store: new FolderStore("hopline-records") });
const pool = await agent.openPool("shop", { size: 1, session_type: "dynamic", product_no: "dynamic-world", quantity: 0.5 });
const browser = await puppeteer.launch({ executablePath: process.env.HOPLINE_CHROMIUM });
for (const url of process.argv.slice(2)) {
  await pool.withLease({ target: new URL(url).hostname }, async (lease) => {
    const port = await lease.proxy.onLoopback(); // it closes with the lease
    // A browser uses no proxy for this machine's own addresses, unless it is told to.
    const context = await browser.createBrowserContext({ proxyServer: port.url, proxyBypassList: ["<-loopback>"] });
    const page = await context.newPage();
    const response = await page.goto(url).catch((error) => console.log(url, lease.observe(error)));
    if (response) console.log(url, response.status(), lease.observe(response.status()));
    await context.close();
  });
}
await browser.close();
await agent.close();
