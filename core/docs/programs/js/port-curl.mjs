// Fetches the URLs of its command line with curl through one session of a pool, which speaks SOCKS5 and wants a login.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { AgentClient, FolderStore } from "hopline";

const agent = new AgentClient({ dailyCapUsd: 20, store: new FolderStore("hopline-records") });
const pool = await agent.openPool("shop", { size: 1, session_type: "dynamic", product_no: "dynamic-world" });
await pool.withLease(async (lease) => {
  const port = await lease.proxy.onLoopback(); // such as http://127.0.0.1:41234
  for (const url of process.argv.slice(2)) {
    const { stdout } = await promisify(execFile)("curl", ["--silent", "--fail", "--proxy", port.url, url]);
    console.log(stdout.trim());
  }
}); // the port closes with the lease
await agent.close();
