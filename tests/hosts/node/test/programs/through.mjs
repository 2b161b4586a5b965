// Sixty pages of a site that blocks an exit after ten requests, by the dispatcher of a pool: half of them by Node's own `fetch`, half by that of
// `undici` and its `request`. Prints the statuses, the sessions, and what the pool has out at the end.
import { readFileSync } from "node:fs";

import { AgentClient } from "hopline";
import { fetch as fetchOfUndici, request } from "undici";

const { SITE, CA } = process.env;
const agent = new AgentClient({ dailyCapUsd: 1000 });
const pool = await agent.openPool("shop", { size: 3, session_type: "dynamic", product_no: "dynamic-world", protocol: "http" });
const dispatcher = pool.dispatcher({ requestTls: { ca: readFileSync(CA) } });
const WAYS = [
  async (url) => (await text(await fetch(url, { dispatcher }))).status,
  async (url) => (await text(await fetchOfUndici(url, { dispatcher }))).status,
  async (url) => {
    const { statusCode, body } = await request(url, { dispatcher });
    await body.text();
    return statusCode;
  },
];
const text = async (answer) => (await answer.text(), answer);
const pages = Array.from({ length: 60 }, (_, number) => number);
const statuses = [];
const work = async () => {
  for (let page = pages.shift(); page !== undefined; page = pages.shift()) statuses.push(await WAYS[page % 3](`${SITE}/page/${page}`));
};
await Promise.all(Array.from({ length: 8 }, work));
const { slots, leased } = await pool.status();
console.log(JSON.stringify({ statuses, sessions: slots.map(({ session_id }) => session_id), leased }));
await agent.close();
