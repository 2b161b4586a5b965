import { AgentClient, FolderStore } from "hopline";
import { fetch } from "undici"; // Node's own `fetch` takes the dispatcher, too

const agent = new AgentClient({ dailyCapUsd: 40, store: new FolderStore("hopline-records") });
const pool = await agent.openPool("shop", { size: 3, session_type: "dynamic", product_no: "dynamic-world", protocol: "http" });
const dispatcher = pool.dispatcher();
/** @param {string} url */
const visit = async (url) => {
  const page = await fetch(url, { dispatcher });
  await page.text(); // until then the page has its session
  return page.status;
};
const visited = await Promise.all(process.argv.slice(2).map((url) => visit(url).catch((error) => error.cause ?? error)));
for (const status of visited) console.log(status);
await agent.close();
