// The folder store by itself: what every store must do, and what becomes of a folder whose clients die.
import assert from "node:assert/strict";
import { execFile, fork } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { FolderStore } from "hopline";

import { folder, program } from "./lib/sandbox.mjs";
import { ask, runSuite } from "./lib/suite.mjs";

const CASES = join(process.env.HOPLINE_VECTORS, "../store");
const KEEPER = fileURLToPath(new URL("programs/keeper.mjs", import.meta.url));
const PYTHON = fileURLToPath(new URL("programs/folder.py", import.meta.url));
const [ONE, TWO] = ["1", "2"].map((digit) => `5e.i${digit.padStart(32, "0")}`);
const LONG_AGO = new Date(Date.now() - 7200_000);

/** A part of the package by itself. */
const part = (name) => import(pathToFileURL(join(process.env.HOPLINE_VECTORS, "../../bindings-wasm/js/src", name)));
const data = (text) => new TextEncoder().encode(text);
const text = (data) => data && new TextDecoder().decode(data);

/** A client of a folder in a process of its own. */
function keeper(path, clock = {}) {
  const child = fork(KEEPER, { env: { ...process.env, FOLDER: path }, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const [waiting, ended] = [new Map(), new Promise((resolve) => child.once("exit", resolve))];
  child.on("message", ({ id, answer, error }) => {
    const { resolve, reject } = waiting.get(id);
    if (error) reject(new Error(error));
    else resolve(answer);
  });
  let count = 0;
  const send = (method, given, more) => new Promise((resolve, reject) => {
    waiting.set((count += 1), { resolve, reject });
    child.send({ id: count, at: clock.now, method, given, ...more });
  });
  const die = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return {
    call: (method, ...given) => send(method, given),
    async dieDuring(method, ...given) {
      send(method, given, { diesAfter: clock.diesAfter }).catch(() => {});
      await ended;
    },
    die,
    async close() {
      await send("close", []);
      await die();
    },
  };
}

/** A client of a folder in this process. */
function near(path, clock) {
  const store = new FolderStore(path, { now: () => clock.now });
  return { call: (method, ...given) => ask(store, method, ...given), close: () => store.close(), die: () => store.close() };
}

const DAMAGE = {
  cut: (bytes) => bytes.subarray(0, bytes.length / 2),
  empty: () => "",
  garbage: () => Uint8Array.from([0xff, 0xfe, 0x00, 0x7b, 0x0a]),
};

/** An empty folder, and all that is done with it. */
function stage({ steps }, diesAfter) {
  const [path, clock, clients] = [folder(), { diesAfter }, []];
  const dies = steps.some((step) => step.dies || step.die);
  return {
    open() {
      clients.push((dies ? keeper : near)(path, clock));
      return clients.at(-1);
    },
    set(now) {
      clock.now = now;
    },
    damage(name, how) {
      const file = ["kept", "open"].map((kind) => join(path, kind, name)).find(existsSync);
      writeFileSync(file, DAMAGE[how](readFileSync(file)));
    },
    async end() {
      await Promise.all(clients.map((client) => client.die()));
      rmSync(path, { recursive: true });
    },
  };
}

const cases = () => readdirSync(CASES).filter((name) => name.endsWith(".json")).map((name) => [name, JSON.parse(readFileSync(join(CASES, name), "utf8"))]);

test("the folder store does what every store must", { timeout: 300_000 }, async () => {
  // A claim lasts as long as its owner, so it can't be ended while that one lives.
  const { cases: count, failures, text } = await runSuite(cases(), ["dies", "damage"], (each) => stage(each, 1));
  console.log(text);
  assert.ok(count > 80, `${count}`);
  assert.deepEqual(failures, []);
});

test("whenever a client dies while it puts, the old data is there or the new", { timeout: 120_000 }, async () => {
  const dying = cases().map(([name, file]) => [name, { cases: file.cases.filter(({ needs }) => needs?.includes("dies")) }]);
  for (const ms of [0, 1, 2, 4]) {
    const { cases: count, failures } = await runSuite(dying, ["dies"], (each) => stage(each, ms));
    assert.equal(count, 2);
    assert.deepEqual(failures, [], `${ms}`);
  }
});

test("of many processes that want a name of one that died, one has it", { timeout: 60_000 }, async (t) => {
  const path = folder();
  const keepers = Array.from({ length: 6 }, () => keeper(path));
  t.after(() => Promise.all(keepers.map((each) => each.die())));
  const dead = keepers.shift();
  const names = Array.from({ length: 30 }, (_, n) => `5e.r${n.toString(16).padStart(32, "0")}`);
  for (const name of names) await dead.call("put", name, name, { new: true });
  await Promise.all(keepers.map((each) => each.call("list", "5e")));
  await dead.die();
  const told = await Promise.all(keepers.flatMap((each) => names.map((name) => each.call("claim", [name], 1))));
  const owned = told.flatMap(({ claimed = {} }) => Object.entries(claimed));
  assert.deepEqual(owned.map(([name]) => name).sort(), names);
  assert.ok(owned.every(([name, data]) => name === data));
  // The owner can write, and nobody else.
  const written = await Promise.all(keepers.map((each) => Promise.all(names.map((name) => each.call("put", name, "new")))));
  assert.deepEqual(names.map((_, n) => written.filter((each) => each[n] === "done").length), names.map(() => 1));
});

test("processes that spend at once never pass the cap", { timeout: 60_000 }, async (t) => {
  const path = folder();
  const keepers = Array.from({ length: 4 }, () => keeper(path));
  t.after(() => Promise.all(keepers.map((each) => each.die())));
  const spend = (each, n) => each.call("spend", "5e", { entry: `${n}`, amount: "0.7", cap: "10" });
  const told = await Promise.all(keepers.flatMap((each, k) => Array.from({ length: 10 }, (_, n) => spend(each, 10 * k + n))));
  assert.equal(told.filter(({ granted }) => granted).length, 14);
  assert.equal(told.find(({ over }) => over !== undefined && over.startsWith("9.8")).over, "9.8");
});

test("a claim costs the same however many records there are", async (t) => {
  const path = folder();
  const first = new FolderStore(path);
  await first.claim([ONE], 1);
  await first.close();
  for (let n = 0; n < 20_000; n += 1) writeFileSync(join(path, "kept", `5e.r${n.toString(16).padStart(32, "0")}`), "9000000000000\n{}");
  const { default: fs } = await import("node:fs/promises");
  let listed = 0;
  t.mock.method(fs, "readdir", (given) => {
    if (/open|kept|claims/.test(given)) listed += 1;
    return readdirSync(given);
  });
  const { syncBuiltinESMExports } = await import("node:module");
  syncBuiltinESMExports();
  t.after(() => (t.mock.restoreAll(), syncBuiltinESMExports()));
  const { FolderStore: Store } = await part("folder.js");
  const store = new Store(path);
  await store.claim([TWO], 1);
  await store.put(TWO, data("{}"));
  await store.put(TWO, data("{}"), { keepFor: 1000, release: true });
  assert.equal(listed, 0, "no folder of records or claims is read");
  await store.close();
});

test("a folder says which format it has, and one that says nothing is not opened", async () => {
  const full = folder();
  writeFileSync(join(full, "notes.txt"), "");
  await assert.rejects(new FolderStore(full).claim([ONE], 1), { kind: "store", message: /is not empty, and no store/ });
  const path = folder();
  mkdirSync(join(path, "lost+found"));
  const store = new FolderStore(path);
  await store.claim([ONE], 1);
  await store.close();
  assert.equal(readFileSync(join(path, "format"), "utf8"), "hopline folder of Node 2\n");
  assert.deepEqual(readdirSync(path).sort(), ["claims", "days", "format", "kept", "lost+found", "open", "owners", "until"]);
});

test("a folder of Python is not opened by Node, nor one of Node by Python", { timeout: 60_000 }, async (t) => {
  const python = process.env.HOPLINE_PYTHON;
  t.diagnostic(python ? "with Python's own package" : "the wheel is not there: with the format file that it writes, by which Rust's tests refuse Node's folder");
  const inPython = async (path) => (await promisify(execFile)(python, [PYTHON, path])).stdout;
  const [theirs, ours] = [folder(), folder()];
  if (python) assert.equal(await inPython(theirs), "");
  else writeFileSync(join(theirs, "format"), "hopline folder 2\n");
  const before = readdirSync(theirs, { recursive: true });
  await assert.rejects(new FolderStore(theirs).claim([ONE], 1), { kind: "store", message: /has the format `hopline folder 2`, not `hopline folder of Node 2`/ });
  assert.deepEqual(readdirSync(theirs, { recursive: true }), before);
  const store = new FolderStore(ours);
  await store.claim([ONE], 1);
  if (python) assert.match(await inPython(ours), /^store [^]*has the format `hopline folder of Node 2`, not `hopline folder 2`/);
  assert.deepEqual(await store.claim([ONE], 1), { claimed: new Map([[ONE, undefined]]) });
  await store.close();
});

test("a store that could not be opened is tried again by the next call", async () => {
  const path = join(folder(), "file");
  writeFileSync(path, "");
  const store = new FolderStore(path);
  await assert.rejects(store.claim([ONE], 1), { code: "ENOTDIR" });
  rmSync(path);
  assert.deepEqual(await store.claim([ONE], 1), { claimed: new Map([[ONE, undefined]]) });
  await store.close();
  // A closed one opens again.
  assert.deepEqual(await store.claim([ONE], 1), { claimed: new Map([[ONE, undefined]]) });
  await store.close();
});

test("what may be dropped is dropped once its day is over, and what an owner left that died goes with it", async (t) => {
  const path = folder();
  const dead = keeper(path, { now: 1e12 });
  await dead.call("put", ONE, "{}", { new: true, keepFor: 1000, release: true });
  await dead.call("put", TWO, "{}", { new: true, keepFor: 1000 });
  await dead.call("claim", ["5e.r".padEnd(36, "0")], 1);
  await dead.die();
  const [owner] = readdirSync(join(path, "owners"));
  utimesSync(join(path, "owners", owner), LONG_AGO, LONG_AGO);
  const store = new FolderStore(path, { now: () => 1e12 + 2 * 86_400_000 });
  t.after(() => store.close());
  assert.deepEqual(await store.list("5e"), { entries: [], more: false });
  const isTidy = () => !existsSync(join(path, "owners", owner)) && ["kept", "claims", "until"].every((part) => readdirSync(join(path, part)).length === 0);
  for (const until = Date.now() + 60_000; !isTidy() && Date.now() < until; ) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(isTidy());
});

test("what is owned is not dropped, and is once it is let go", async () => {
  const path = folder();
  let now = 1e12;
  const store = new FolderStore(path, { now: () => now });
  await store.put(ONE, data("{}"), { new: true, keepFor: 1000 });
  now += 5 * 86_400_000;
  assert.equal(text((await store.claim([ONE], 1)).claimed.get(ONE)), "{}");
  await store.release();
  assert.deepEqual(await store.claim([ONE], 1), { claimed: new Map([[ONE, undefined]]) });
  await store.close();
});

test("an owner of more names than a file has links has them all", async (t) => {
  const { default: fs } = await import("node:fs/promises");
  const { syncBuiltinESMExports } = await import("node:module");
  const { link } = fs;
  let links = 0;
  // As on Windows, where a file has 1024 links at most; here it is 10.
  t.mock.method(fs, "link", async (from, to) => {
    links += 1;
    if (links % 10 === 0) throw Object.assign(new Error("too many links"), { code: "EMLINK" });
    return link(from, to);
  });
  syncBuiltinESMExports();
  t.after(() => (t.mock.restoreAll(), syncBuiltinESMExports()));
  const store = new (await part("folder.js")).FolderStore(folder());
  const names = Array.from({ length: 40 }, (_, n) => `5e.r${n.toString(16).padStart(32, "0")}`);
  assert.equal((await store.claim(names, 40)).claimed.size, 40);
  await store.close();
});

test("a folder with a long name has a socket, too", { skip: process.platform !== "linux" && "only Linux has a shorter way" }, async () => {
  const path = join(folder(), "a".repeat(100), "b".repeat(100));
  const [one, two] = [new FolderStore(path), new FolderStore(path)];
  await one.claim([ONE], 1);
  assert.deepEqual(await two.claim([ONE], 1), { busy: undefined, here: true });
  await one.close();
  assert.deepEqual(await two.claim([ONE], 1), { claimed: new Map([[ONE, undefined]]) });
  await two.close();
});

test("on Windows an owner is found by its pipe", async () => {
  const { socketPath } = await part("owner.js");
  assert.equal(socketPath("C:\\records\\owners", "ab", "win32"), "\\\\.\\pipe\\hopline-ab");
  assert.equal(socketPath("/records/owners", "ab", "linux"), "/records/owners/ab/socket");
});

test("workers of a cluster share a folder as other processes do, however long its path is", { timeout: 60_000 }, async () => {
  for (const path of [folder(), join(folder(), "a-folder-with-a-long-name-".repeat(4))]) {
    const { out, errors } = await program("clustered.mjs", { FOLDER: path }).ended;
    assert.deepEqual(JSON.parse(out || "[]"), ["claimed", "busy", "claimed"], `${path}: ${errors}`);
    assert.ok(readdirSync(join(path, "owners")).every((owner) => /^[0-9a-f]{16}$/.test(owner)));
  }
});

test("where the system can't listen on so long a path, the store says so when it is opened, and leaves nothing behind", async (t) => {
  const { value: before } = Object.getOwnPropertyDescriptor(process, "platform");
  t.after(() => Object.defineProperty(process, "platform", { value: before }));
  Object.defineProperty(process, "platform", { value: "darwin" });
  const path = join(folder(), "ä".repeat(40));
  const store = new FolderStore(path);
  for (const call of [() => store.claim([ONE], 1), () => store.list("5e")]) {
    await assert.rejects(call, ({ kind, message, notOpened }) => kind === "store" && notOpened === true && /is too long for a socket on this system: its socket's path has \d+ of at most 103 bytes; give a shorter path/.test(message));
  }
  assert.deepEqual(existsSync(join(path, "owners")) ? readdirSync(join(path, "owners")) : [], []);
  const short = new FolderStore(folder());
  assert.ok((await short.claim([ONE], 1)).claimed);
  await short.close();
});

test("whether what is busy is another client's of this process is known", async () => {
  const path = folder();
  const [far, near, own] = [keeper(path), new FolderStore(path), new FolderStore(path)];
  await far.call("claim", [ONE], 1);
  await own.claim([TWO], 1);
  const found = [await near.claim([ONE], 1), await near.claim([TWO], 1)];
  assert.deepEqual(found, [{ busy: undefined, here: false }, { busy: undefined, here: true }]);
  await Promise.all([far.close(), own.close(), near.close()]);
});

test("a client that closes a folder with a long path leaves the sockets of others alone", { skip: process.platform !== "linux" && "only Linux has a shorter way" }, async () => {
  const path = join(folder(), "a".repeat(100));
  const stores = Array.from({ length: 8 }, () => new FolderStore(path));
  const names = stores.map((_, n) => `5e.i${String(n).padStart(32, "0")}`);
  await Promise.all(stores.map((store, n) => store.claim([names[n]], 1)));
  for (let gone = 0; gone < 6; gone += 1) {
    // One ends while the others look at whoever else lives.
    const looking = stores.slice(gone + 1).flatMap((store) => Array.from({ length: 5 }, () => store.claim([names.at(-1)], 1)));
    await Promise.all([stores[gone].close(), ...looking]);
    const owners = readdirSync(join(path, "owners"));
    assert.equal(owners.length, stores.length - gone - 1);
    for (const owner of owners) assert.ok(existsSync(join(path, "owners", owner, "socket")), `the socket of a living owner, after ${gone + 1} have gone`);
  }
  assert.ok((await stores[6].claim([names[7]], 1)).here, "a living owner keeps its name");
  await Promise.all(stores.map((store) => store.close()));
});
