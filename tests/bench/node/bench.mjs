// What Hopline costs in Node, beside others: `cargo xtask bench node` runs it and writes its lines into a table.
//
// node bench.mjs BODY [--once]
//
// BODY is the list that all hosts read. With `--once` each work is done once, to see that it comes to its result.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { AgentClient, FolderStore } from "hopline";
import createClient from "openapi-fetch";
import * as v from "valibot";
import { z } from "zod";

const once = process.argv.includes("--once");
const list = readFileSync(process.argv[2]);
const small = Buffer.from('{"success":true,"data":{"balance":12.50}}');

const text = [z.string(), v.string()];
const number = [z.number(), v.number()];
const required = ["product_no", "name", "type", "sharing", "currency", "unit"];
/** The same members for both libraries. */
const product = (strings, numbers, flag, optional) => ({
  ...Object.fromEntries(required.map((name) => [name, strings])),
  available: flag,
  price: numbers,
  stock: optional(numbers),
  country: optional(strings),
  city: optional(strings),
});
const page = (items, strings, numbers, optional) => ({ items, next_cursor: optional(strings), total: optional(numbers), cache_ttl_seconds: optional(numbers) });

const zodProduct = z.object(product(text[0], number[0], z.boolean(), (inner) => inner.nullish()));
const zodPage = z.object(page(z.array(zodProduct), text[0], number[0], (inner) => inner.nullish()));
const zodList = z.object({ success: z.boolean(), data: zodPage });
const valibotProduct = v.object(product(text[1], number[1], v.boolean(), v.nullish));
const valibotPage = v.object(page(v.array(valibotProduct), text[1], number[1], v.nullish));
const valibotList = v.object({ success: v.boolean(), data: valibotPage });

/** Milliseconds that the work took, once: for each contender those of each round. Contenders take turns. */
async function rounds(contenders) {
  const times = contenders.map(() => []);
  // The first rounds warm up: the engine compiles what runs often.
  const warm = once ? 0 : 5;
  for (let round = 0; round < warm + (once ? 1 : 25); round++) {
    for (const [index, work] of contenders.entries()) {
      const begun = performance.now();
      let done = 0;
      let took = 0;
      do {
        await work();
        done++;
        took = performance.now() - begun;
      } while (!once && took < 5);
      if (round >= warm) times[index].push((took * 1000) / done);
    }
  }
  return times;
}

/** Lines of the table: the first contender beside each of the others. */
function rows(work, [own, ...others], named) {
  return named.map(([what, goal], index) => ({ work, figures: own, unit: "µs", goal, beside: { what, figures: others[index] } }));
}

const answering = (body) => async () => new Response(body, { status: 200, headers: { "content-type": "application/json" } });
const account = { apiKey: "key", baseUrl: "https://api.example/v1" };

async function lists() {
  const fetch = answering(list);
  const agent = new AgentClient({ ...account, fetch });
  const openapi = createClient({ baseUrl: account.baseUrl, fetch });
  const check = (items) => assert.equal(items.length, 100);
  const times = await rounds([
    async () => check((await agent.listProducts()).items),
    async () => check((await (await fetch()).json()).data.items),
    async () => check(zodList.parse(await (await fetch()).json()).data.items),
    async () => check(v.parse(valibotList, await (await fetch()).json()).data.items),
    async () => check((await openapi.GET("/products")).data.data.items),
  ]);
  await agent.close();
  return rows("a list of 100, the whole call", times, [["`fetch` + `json()`, unchecked", 1.6], ["`fetch` + `json()`, then zod"], ["`fetch` + `json()`, then valibot"], ["openapi-fetch, unchecked"]]);
}

async function smallCalls() {
  const fetch = answering(small);
  const agent = new AgentClient({ ...account, fetch });
  const openapi = createClient({ baseUrl: account.baseUrl, fetch });
  const times = await rounds([
    async () => assert.equal((await agent.getBalance()).balance, 12.5),
    async () => assert.equal((await (await fetch()).json()).data.balance, 12.5),
    async () => assert.equal((await openapi.GET("/billing/balance")).data.data.balance, 12.5),
  ]);
  await agent.close();
  return rows("a small call", times, [["`fetch` + `json()`", 2], ["openapi-fetch"]]);
}

const bought = Buffer.from('{"success":true,"data":{"session_id":"ses_1","session_type":"dynamic","status":"active"}}');

/** Puts so many records, many at once: most of the time is the disk's. */
async function fill(folder, size) {
  const store = new FolderStore(folder);
  const data = Buffer.alloc(600, "x");
  const spread = (number) => ((BigInt(number) + 1n) * 0x9e3779b97f4a7c15n % (1n << 64n)).toString(16).padStart(16, "0");
  const put = (number) => store.put(`5e.r${spread(number)}${number.toString(16).padStart(16, "0")}`, data, { new: true, release: true });
  const width = 32;
  for (let first = 0; first < size; first += width) await Promise.all(Array.from({ length: Math.min(width, size - first) }, (_, n) => put(first + n)));
  await store.close();
}

/** A purchase with an intent, beside the records of others in the same folder. */
async function purchases() {
  const place = mkdtempSync(join(tmpdir(), "hopline-bench-"));
  const sizes = [0, 10_000, 100_000].map((many) => (once ? Math.min(many, 8) : many));
  const agents = [];
  for (const [index, size] of sizes.entries()) {
    const folder = join(place, String(index));
    await fill(folder, size);
    agents.push(new AgentClient({ ...account, fetch: answering(bought), store: new FolderStore(folder) }));
  }
  let count = 0;
  const buy = (agent) => async () => {
    const session = await agent.createSession({ session_type: "dynamic", product_no: "dynamic-world" }, { intent: `bought-${count++}` });
    assert.equal(session.session_id, "ses_1");
  };
  const [none, ...others] = await rounds(agents.map(buy));
  await Promise.all(agents.map((agent) => agent.close()));
  rmSync(place, { recursive: true });
  const row = (figures, index) => ({
    work: `a purchase with an intent, beside ${sizes[index + 1].toLocaleString("en").replaceAll(",", " ")} records in a folder`,
    figures,
    unit: "µs",
    goal: 1.3,
    beside: { what: "beside 0", figures: none },
  });
  return others.map(row);
}

const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
const versions = Object.fromEntries(["hopline", "openapi-fetch", "valibot", "zod"].map((name) => [name, version(name)]));
console.log(JSON.stringify({ versions: { ...versions, Node: process.versions.node }, rows: [...(await lists()), ...(await smallCalls()), ...(await purchases())] }));
