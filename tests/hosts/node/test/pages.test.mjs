// Lists that are walked page by page.
import assert from "node:assert/strict";
import { test } from "node:test";

import { AgentClient, HoplineError, Walk, meta } from "hopline";

import { sandbox } from "./lib/sandbox.mjs";

/** Items of an iteration, no more than `most` of them. */
async function some(iterable, most = Infinity) {
  const items = [];
  for await (const item of iterable) if (items.push(item) >= most) break;
  return items;
}

/** A client that answers with these bodies, and the addresses that it was asked for. */
function answering(t, ...bodies) {
  const asked = [];
  const fetch = async (url) => {
    asked.push(new URL(url).search);
    return new Response(JSON.stringify({ success: true, data: bodies[Math.min(asked.length, bodies.length) - 1] }), { headers: { "content-type": "application/json" } });
  };
  const agent = new AgentClient({ apiKey: "key", baseUrl: "http://127.0.0.1:9/v1", fetch });
  t.after(() => agent.close());
  return { agent, asked };
}

const numbers = (items) => items.map(({ product_no }) => product_no);

test("a walk gives every product once, whatever the size of a page", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const { items, total } = await agent.listProducts({ limit: 100 });
  assert.ok(total > 7 && items.length === total);
  for (const limit of [1, 3, 100]) {
    const walk = agent.walkProducts({ limit });
    assert.ok(walk instanceof Walk);
    assert.deepEqual([numbers(await some(walk)), walk.end, walk.position], [numbers(items), "last_page", undefined]);
  }
  const shown = await some(agent.walkPublicProducts({ country: "US", limit: 1 }));
  assert.ok(shown.length > 1 && shown.every(({ country }) => country === "US"));
  const pages = await some(agent.walkProducts({ limit: 4 }).pages());
  assert.deepEqual(numbers(pages.flatMap((page) => page.items)), numbers(items));
  assert.match(meta(pages[0]).raw, /next_cursor/);
});

test("a walk that was left goes on from its position in another client, and nothing is lost", async (t) => {
  const service = await sandbox(t);
  const [one, two] = [service.agent(), service.agent()];
  const all = numbers(await some(one.walkProducts({ limit: 3 })));
  // In the middle of a page it is that page; after its last item it is the next one.
  for (const [taken, from] of [[1, 0], [2, 0], [3, 3], [5, 3], [6, 6]]) {
    const left = one.walkProducts({ limit: 3 });
    assert.deepEqual(numbers(await some(left, taken)), all.slice(0, taken));
    assert.equal(left.end, undefined);
    assert.deepEqual(numbers(await some(two.walkProducts({ limit: 3 }, { position: left.position }))), all.slice(from));
  }
  const left = one.walkProducts({ limit: 3 });
  const [first] = await some(left.pages(), 1);
  const rest = await some(two.walkProducts({ limit: 3 }, { position: left.position }).pages());
  assert.deepEqual(numbers([first, ...rest].flatMap((page) => page.items)), all);
  assert.deepEqual(numbers(await some(left)), all.slice(3), "and the walk itself goes on, too");
});

test("a walk ends at its cap, and goes on under a higher one", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const all = numbers(await some(agent.walkProducts({ limit: 2 })));
  const capped = agent.walkProducts({ limit: 2 }, { maxPages: 2 });
  assert.deepEqual([numbers(await some(capped)), capped.end], [all.slice(0, 4), "page_cap"]);
  assert.deepEqual(await some(capped), [], "what is over stays over");
  // A position keeps its cap, and one page is read in any case.
  for (const options of [{}, { maxPages: 2 }, { maxPages: 1 }, { maxPages: 3 }]) {
    const one = agent.walkProducts({ limit: 2 }, { ...options, position: capped.position });
    assert.deepEqual([numbers(await some(one)), one.end], [all.slice(4, 6), all.length > 6 ? "page_cap" : "last_page"]);
  }
  const further = agent.walkProducts({ limit: 2 }, { maxPages: 100, position: capped.position });
  assert.deepEqual([numbers(await some(further)), further.end], [all.slice(4), "last_page"]);
});

test("a page that fails is an error, and the walk goes on with that page", async (t) => {
  const service = await sandbox(t);
  const agent = service.agent();
  const all = numbers(await some(agent.walkProducts({ limit: 3 })));
  const walk = agent.walkProducts({ limit: 3 }, { attempts: 1 });
  const before = await some(walk, 3);
  await service.fault({ kind: "html", status: 502 }, "list_products");
  await assert.rejects(some(walk), { kind: "protocol", operation: "list_products", status: 502 });
  assert.deepEqual([...numbers(before), ...numbers(await some(walk))], all);
  const stopped = agent.walkProducts({ limit: 3 }, { signal: AbortSignal.abort() });
  await assert.rejects(some(stopped), { kind: "cancelled" });
});

test("an empty page goes on, a cursor that comes again ends the walk, and a page of another shape is an error", async (t) => {
  const product = (product_no) => ({ product_no, name: "n", type: "dynamic", sharing: "shared", available: true, price: 1, currency: "USD", unit: "GB" });
  const { agent, asked } = answering(
    t, { items: [], next_cursor: "a&b" }, { items: [product("1")], next_cursor: "c" }, { items: [product("2")], next_cursor: "a&b" },
  );
  const walk = agent.walkProducts({ cursor: "mine" });
  assert.deepEqual([(await some(walk)).map(({ product_no }) => product_no), walk.end], [["1", "2"], "repeated_cursor"]);
  assert.deepEqual(asked, ["?cursor=mine", "?cursor=a%26b", "?cursor=c"]);
  for (const body of [{}, { items: {} }, 7, null]) {
    const error = await some(answering(t, body).agent.walkProducts()).catch((error) => error);
    assert.ok(error instanceof HoplineError, String(error));
    assert.deepEqual([error.kind, error.operation, error.status], ["decode", "list_products", 200]);
  }
});

test("a walk with wrong options is refused, and nothing is sent", async (t) => {
  const { agent, asked } = answering(t, { items: [] });
  for (const options of [null, 7, { maxPages: 0 }, { maxPages: 1.5 }, { maxPages: "2" }, { position: "" }, { position: 7 }, { position: "[]" }, { position: '{"operation":"list_public_products"}' }, { position: '{"operation":"list_products","page":1}' }]) {
    assert.throws(() => agent.walkProducts({}, options), { kind: "invalid", effect: "none", operation: "list_products" }, JSON.stringify(options));
  }
  const late = [[null, {}], [[], {}], [{ limit: 1000 }, {}], [{ colour: 1 }, {}], [{}, { attempt: 1 }], [{}, { signal: 7 }]];
  for (const [params, options] of late) await assert.rejects(some(agent.walkProducts(params, options)), { kind: "invalid", effect: "none" });
  assert.deepEqual(asked, []);
});
