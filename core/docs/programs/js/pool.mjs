import { AgentClient, FolderStore } from "hopline";
import { fetch } from "undici";

const agent = new AgentClient({ dailyCapUsd: 40, store: new FolderStore("hopline-records") });
const pool = await agent.openPool("shop", { size: 5, session_type: "dynamic", product_no: "dynamic-world", quantity: "0.5", protocol: "http" });
/** @param {string} url */
const visit = (url) =>
  pool.withLease({ target: new URL(url).host }, async (lease) => {
    const dispatcher = lease.dispatcher(); // one for each exit, so the next lease of it uses its connections again
    try {
      const response = await fetch(url, { dispatcher, signal: AbortSignal.timeout(20_000) });
      const text = await response.text();
      // A block gives the session another exit once it is back.
      return { advice: lease.observe(response), text };
    } catch (error) {
      lease.observe(/** @type {Error} */ (error)); // the pool knows only what is observed
      throw error;
    }
  });
for (const url of process.argv.slice(2)) console.log(url, await visit(url).catch((error) => error));
await agent.close();
