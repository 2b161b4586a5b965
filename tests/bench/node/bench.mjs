// The costs of Hopline in Node, beside others: `cargo xtask bench node` runs it and writes its lines into a table.
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

import { fleets } from "./fleets.mjs";
import { account, answering, purchases, rounds, rows } from "./rounds.mjs";

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
  ], once);
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
  ], once);
  await agent.close();
  return rows("a small call", times, [["`fetch` + `json()`", 2], ["openapi-fetch"]]);
}

/** A purchase with an intent, beside the records of others in the same folder. */
async function bought() {
  const place = mkdtempSync(join(tmpdir(), "hopline-bench-"));
  const measured = await purchases(AgentClient, "a folder", (index) => new FolderStore(join(place, String(index))), once);
  rmSync(place, { recursive: true });
  return measured;
}

const version = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
const versions = Object.fromEntries(["hopline", "openapi-fetch", "valibot", "zod"].map((name) => [name, version(name)]));
console.log(JSON.stringify({ versions: { ...versions, Node: process.versions.node }, rows: [...(await lists()), ...(await smallCalls()), ...(await bought()), ...(await fleets(once))] }));
