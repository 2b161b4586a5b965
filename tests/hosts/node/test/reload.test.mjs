// Code that is evaluated anew while its program goes on: its client takes over from the one that it made before.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

import * as hopline from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

globalThis.hopline = hopline;

/** Evaluates a cell as notebooks do, and returns its last value. */
const cell = (code) => runInThisContext(code);

async function stage(t) {
  const service = await sandbox(t);
  globalThis.service = { apiKey: service.api_key, baseUrl: service.agent_url };
  globalThis.place = folder();
  const made = [];
  t.after(() => Promise.all(made.map((agent) => agent.close())));
  return { service, keep: (agent) => (made.push(agent), agent) };
}

const MAKE = "new hopline.AgentClient({ ...service, store: new hopline.FolderStore(place) })";
const opens = (agent, intent = "job") => agent.openSession(WANTED, { intent }).then(({ session_id }) => session_id, ({ kind }) => kind);

test("a cell that is run again goes on with what its client had, and pays once", async (t) => {
  const { service, keep } = await stage(t);
  const first = keep(cell(MAKE));
  const id = await opens(first);
  const second = keep(cell(MAKE));
  assert.equal(await opens(second), id);
  await assert.rejects(first.getBalance(), { kind: "misuse", message: /closed/ });
  assert.equal((await service.state()).charges.length, 1);
  // Another cell, another account, another folder and code that is no cell are others.
  const others = [cell(`(${MAKE})`), cell(MAKE.replace("...service", '...service, account: "other"')), cell(`\n${MAKE}`), (0, eval)(MAKE)].map(keep);
  assert.deepEqual(await Promise.all(others.map((agent) => opens(agent))).then((ends) => ends.map((end) => end === "busy")), [true, false, true, true]);
  assert.equal(await opens(second), id);
});

test("clients that a cell makes in one go, or that functions make, stay beside each other", async (t) => {
  const { keep } = await stage(t);
  const both = cell(`[1, 2].map(() => ${MAKE})`).map(keep);
  const looped = cell(`var all = []; for (let n = 0; n < 2; n += 1) all.push(${MAKE}); all`).map(keep);
  const make = cell(`() => ${MAKE}`);
  const called = [];
  for (let n = 0; n < 2; n += 1) called.push(keep(make())), await new Promise(setImmediate);
  for (const [one, other] of [both, looped, called]) {
    const intent = `job-${Math.random()}`;
    assert.match(await opens(one, intent), /^ses_/);
    assert.equal(await opens(other, intent), "busy");
    assert.ok((await one.getBalance()).balance > 0);
  }
});

test("a module that is loaded under a new time, as by Vite, takes over from the one before, with all of its clients", async (t) => {
  const { service, keep } = await stage(t);
  const path = join(folder(), "module.mjs");
  writeFileSync(path, `export const one = ${MAKE};\nexport const other = ${MAKE};\nexport const make = () => ${MAKE};\n`);
  const load = async (query) => Object.values(await import(pathToFileURL(path) + query)).map((value) => keep(typeof value === "function" ? value() : value));
  // In the order of their names.
  const [made, one, other] = await load("");
  const ids = [await opens(one, "one"), await opens(other, "other"), await opens(made, "made")];
  // Another query is another module, which may be there beside.
  assert.equal(await opens((await load("?copy"))[1], "one"), "busy");
  const [madeAnew, oneAnew, otherAnew] = await load("?t=1795000000000");
  assert.deepEqual([await opens(otherAnew, "one"), await opens(oneAnew, "other"), await opens(madeAnew, "made")], ids);
  for (const old of [one, other, made]) await assert.rejects(old.getBalance(), { kind: "misuse" });
  assert.equal((await service.state()).charges.length, 3);
});
