// What holds a client's folder, and what becomes of folders whose holder can't be asked.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

/** A part of the package by itself. */
const part = (name) => import(pathToFileURL(join(process.env.HOPLINE_VECTORS, "../../bindings-wasm/js/src", name)));
const client = (path) => join(path, readdirSync(path).find((name) => name.startsWith("node-")));
const LONG_AGO = new Date(Date.now() - 3600_000);

test("on Windows a folder is held by the name that others look for", async () => {
  const { socketPath } = await part("lock.js");
  const [draft, found] = [".node-ab", "node-ab"].map((name) => socketPath(`C:\\records\\${name}`, "win32"));
  assert.equal(draft, "\\\\.\\pipe\\hopline-node-ab");
  assert.equal(found, draft);
  assert.notEqual(socketPath("C:\\records\\node-cd", "win32"), found);
  assert.equal(socketPath("/records/.node-ab", "linux"), "/records/.node-ab/socket");
});

test("the folder of a machine that can't be asked is taken over once its signs of life have ended", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const gone = service.agent({ store: new FolderStore(path) });
  const { session_id } = await gone.openSession(WANTED, { intent: "job-17" });
  await gone.close();
  // As if it had been kept by another machine, of which nobody can see whether it lives.
  const holder = join(client(path), "holder");
  writeFileSync(holder, JSON.stringify({ boot: "another boot", host: "another-host" }));
  const agent = service.agent({ store: new FolderStore(path) });
  assert.deepEqual(await agent.saved(), []);
  await assert.rejects(agent.openSession(WANTED, { intent: "job-17" }), { kind: "busy", effect: "none", advice: "wait_for_other" });
  utimesSync(holder, LONG_AGO, LONG_AGO);
  assert.equal((await agent.openSession(WANTED, { intent: "job-17" })).session_id, session_id);
  assert.deepEqual((await agent.saved()).map(({ intent }) => intent), ["job-17"]);
  assert.equal((await service.state()).charges.length, 1);
});

test("a folder that does not say who holds it, or does in the far future, is not held for good", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const { isHeld } = await part("lock.js");
  for (const [name, holder, at] of [["node-01", undefined, LONG_AGO], ["node-02", "{", LONG_AGO], ["node-03", '{"boot":"b","host":"h"}', new Date(Date.now() + 1e10)]]) {
    const made = join(path, name);
    mkdirSync(join(made, "claims"), { recursive: true });
    if (holder !== undefined) writeFileSync(join(made, "holder"), holder);
    for (const each of [made, join(made, "holder")].filter(existsSync)) utimesSync(each, at, at);
    assert.equal(await isHeld(made), false, name);
  }
  await service.agent({ store: new FolderStore(path) }).saved();
  assert.equal(readdirSync(path).length, 1, "they were taken over");
});

test("a client that lives gives signs of life", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { beat } = await part("lock.js");
  const path = folder();
  const holder = join(path, "holder");
  writeFileSync(holder, "{}");
  utimesSync(holder, LONG_AGO, LONG_AGO);
  const stop = beat(path);
  t.mock.timers.tick(30_000);
  while (statSync(holder).mtimeMs < Date.now() - 60_000) await new Promise((resolve) => setTimeout(resolve, 10));
  stop();
});

test("what a client left that died while it opened its folder is removed, and what is being opened is not", async (t) => {
  const path = folder();
  const [old, young] = [".node-01", ".node-02"].map((name) => join(path, name));
  for (const draft of [old, young]) mkdirSync(join(draft, "claims"), { recursive: true });
  utimesSync(old, LONG_AGO, LONG_AGO);
  const service = await sandbox(t);
  await service.agent({ store: new FolderStore(path) }).saved();
  assert.deepEqual([existsSync(old), existsSync(young)], [false, true]);
});

test("a draft that can't be removed keeps no client from opening its folder", async (t) => {
  const path = folder();
  const draft = join(path, ".node-01");
  mkdirSync(join(draft, "claims"), { recursive: true });
  utimesSync(draft, LONG_AGO, LONG_AGO);
  // As of another user: nobody here may remove it.
  const { FolderStore: Store } = await part("folder.js");
  t.mock.method(fs, "rm", async () => { throw Object.assign(new Error("not permitted"), { code: "EACCES" }); });
  syncBuiltinESMExports();
  t.after(() => (t.mock.restoreAll(), syncBuiltinESMExports()));
  const store = new Store(path);
  await store.open({ take() {}, fits: () => true });
  t.mock.restoreAll();
  syncBuiltinESMExports();
  await store.close();
  assert.ok(existsSync(draft));
});

test("a client whose folder was taken over while it slept writes nothing any more", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const agent = service.agent({ store: new FolderStore(path) });
  await agent.saved();
  renameSync(client(path), join(path, "elsewhere"));
  const error = await agent.openSession(WANTED).catch((error) => error);
  assert.deepEqual([error.kind, error.cause?.code], ["store", "ENOENT"], error.stack);
  assert.equal((await service.state()).charges.length, 0);
});

/** A folder with what a client left that is gone: a claim and a record. */
function left(name) {
  const path = folder();
  const gone = join(path, "node-01");
  mkdirSync(join(gone, "claims"), { recursive: true });
  writeFileSync(join(gone, "claims", name), "");
  writeFileSync(join(gone, "r-1.json"), "{}");
  writeFileSync(join(gone, "holder"), "");
  utimesSync(join(gone, "holder"), LONG_AGO, LONG_AGO);
  return { path, gone };
}

/** A store as a client has it, and the records that it was given. */
async function opened(t, path, { fits = () => true, take = () => {} } = {}) {
  const store = new (await part("folder.js")).FolderStore(path);
  const records = [];
  await store.open({ fits, take: (found) => (records.push(...found.map(([record]) => record)), take()) });
  t.after(() => store.close());
  return { store, records };
}

test("a claim that was taken over with its records stays, though others want it at the same time", async (t) => {
  const { path } = left("job");
  const rival = join(path, "node-02", "claims");
  const take = () => (mkdirSync(rival, { recursive: true }), writeFileSync(join(rival, "job"), ""));
  const { store, records } = await opened(t, path, { take });
  await store.claim("job");
  assert.deepEqual(records, ["r-1"]);
  rmSync(rival, { recursive: true });
  const other = await opened(t, path);
  await assert.rejects(other.store.claim("job"), { kind: "busy" });
});

test("a claim is nobody's while the records that were taken over with it can't be read", async (t) => {
  const { path, gone } = left("job");
  // The client that is gone had taken over another one.
  mkdirSync(join(gone, "node-00"));
  writeFileSync(join(gone, "node-00", "r-0.json"), "{}");
  // It could be read before it was taken over, and can't be read then.
  const fits = () => (rmSync(join(gone, "r-1.json")), mkdirSync(join(gone, "r-1.json")), true);
  const { store, records } = await opened(t, path, { fits });
  for (const _ of [1, 2]) await assert.rejects(store.claim("job"), { code: "EISDIR" });
  assert.deepEqual(records, ["r-0"]);
  const other = await opened(t, path);
  await assert.rejects(other.store.claim("job"), { kind: "busy" });
  const holder = readdirSync(path).find((name) => existsSync(join(path, name, "node-01")));
  rmdirSync(join(path, holder, "node-01", "r-1.json"));
  writeFileSync(join(path, holder, "node-01", "r-1.json"), "{}");
  await store.claim("job");
  assert.deepEqual(records, ["r-0", "r-1"]);
  await assert.rejects(other.store.claim("job"), { kind: "busy" });
});
