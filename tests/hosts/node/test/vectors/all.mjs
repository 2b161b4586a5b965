// All cases of all files, wherever they come from: Node reads them from a folder, a page is given them.
import { checkFile } from "./format.mjs";
import { run } from "./run.mjs";

/** Runs files, each its name and its JSON. Says how many cases there were, and which failed. */
export function runAll(files) {
  const failures = [];
  const names = new Set();
  let cases = 0;
  for (const [name, file] of files) {
    checkFile(file);
    for (const each of file.cases) {
      cases += 1;
      if (names.has(each.name)) failures.push(`${name}: \`${each.name}\`: another case has this name`);
      names.add(each.name);
      try {
        run(each);
      } catch (error) {
        failures.push(`${name}: \`${each.name}\`: ${error.message}`);
      }
    }
  }
  return { cases, failures, text: `vectors: ${cases} cases in ${files.length} files, ${failures.length} failed` };
}

const start = { start: "a", operation: "get_balance" };
const send = { send: "GET /billing/balance", answer: { ok: { n: 1 } } };
const walk = { walk: "w", operation: "list_products" };
const product = { product_no: "p", name: "n", type: "dynamic", sharing: "shared", available: true, price: 1, currency: "USD", unit: "GB" };
const page = { send: "GET /products", answer: { ok: { items: [product], next_cursor: null } } };
const ask = { ask: "session_event", given: { facts: { status: 200 } } };
const WRONG = [
  [{ starts: "a" }], [{ ...start, hurry: true }], [start], [start, send], [start, { ...send, answer: { ok: 1, colour: 1 } }],
  [start, send, { complete: "a", ok: { raw: { n: 2 } } }], [start, send, { complete: "a", error: {} }], [], [{ wait: { least: 1 } }],
  [{ ...walk, pages: [page] }], [{ ...walk, pages: [page], end: "page_cap" }], [{ ...walk, pages: [page, page], end: "last_page" }],
  [{ ...walk, pages: [page], end: "last_page", items: [2] }], [{ ...walk, from: "v" }], [{ ...walk, pages: [{ ...page, hurry: 1 }], end: "last_page" }],
  [{ observe: "s", seen: "block", verdict: "rotate", reason: "block" }], [{ observe: "s", seen: "block", as: "r" }],
  [ask], [{ ...ask, ok: {} }], [{ ...ask, ok: { status: 201 } }], [{ ...ask, error: {} }], [{ ...ask, given: {}, ok: {} }],
];

/** Cases that must not pass, and did: none, if the runner is sound. */
export function passedWrongly() {
  run({ name: "n", script: [start, send, { complete: "a", ok: { raw: { n: 1 } } }] });
  run({ name: "n", script: [{ ...walk, pages: [page], end: "last_page", items: [product] }] });
  run({ name: "n", script: [{ ...ask, ok: { status: 200 } }] });
  return WRONG.filter((script) => {
    try {
      run({ name: "n", script });
      return true;
    } catch {
      return false;
    }
  });
}
