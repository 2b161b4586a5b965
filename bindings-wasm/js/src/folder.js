import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, readdir, rename, rm, rmdir, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

import { Alarm, pause } from "./clock.js";
import { notOpened, refuse } from "./error.js";
import { host } from "./host.js";
import { Owner, holderOf } from "./owner.js";
import { PLACE } from "./reload.js";
import { claimable, count, dayOf, enter, isHere, leave } from "./stores.js";

/*
 * format          the format of this folder
 * owners/ID/      of each opening of it: its socket, the file that its claims are links to, its drafts
 * claims/NAME     the owner of a name
 * open/NAME       data that is kept until it is deleted
 * kept/NAME       data that may be dropped: a line with the time from which on, then the data. It counts where both are there
 * until/DAY/NAME  names that may be dropped on a day, so that no search through all names is needed
 * days/SPACE.DAY  the spending of a day: the amount of each entry
 */
const FORMAT = "hopline folder of Node 2\n";
/** Files and folders that a file system creates by itself. */
const NOT_OURS = new Set(["lost+found", ".DS_Store"]);
const PARTS = ["owners", "claims", "open", "kept", "until", "days"];

/** The most names of a list. */
const PAGE = 500;
/** The most files that are read at once. */
const AT_ONCE = 64;
/** The interval of cleanups, and the longest wait of a spend for others, in milliseconds. */
const SWEEP = 60 * 60 * 1000;
const PATIENCE = 10_000;

/** Records as files, in a folder that the processes of a machine share. hopline.d.ts documents it. */
export class FolderStore {
  #path;
  #now;
  #owner;
  #opening;
  #timer;
  #sweeping;
  /** The names of this owner. */
  #owned = new Set();
  /** By name: the last call about it. Those of one name follow one another. */
  #turns = new Map();

  constructor(path, { now = Date.now } = {}) {
    if (typeof path !== "string" || path === "") throw refuse("invalid", "store", "`path` must be the name of a folder");
    this.#path = resolve(path);
    this.#now = now;
  }

  get [PLACE]() {
    return `folder ${this.#path}`;
  }

  async claim(names, most) {
    await this.#open();
    const found = await inOrder(names, (name) => this.#look(name));
    const claimed = new Map();
    for (const { name } of claimable(found)) {
      if (claimed.size === most) break;
      const data = await this.#alone(name, () => this.#claim(name));
      if (data !== undefined) claimed.set(name, data ?? undefined);
    }
    if (claimed.size > 0) return { claimed };
    const records = await inOrder(names, (name) => this.#read(name));
    return { busy: records.find(Boolean)?.data, here: found.some(({ holder }) => isHere(holder)) };
  }

  async put(name, data, { new: isNew = false, keepFor, release = false } = {}) {
    await this.#open();
    return this.#alone(name, async () => {
      const isOurs = (await this.#owns(name)) || (isNew && (await this.#begins(name)));
      if (!isOurs) return "lost";
      await this.#write(name, data, keepFor);
      if (release) await this.#release(name);
      return "done";
    });
  }

  async delete(name) {
    await this.#open();
    return this.#alone(name, async () => {
      if (await this.#owns(name)) {
        await this.#erase(name);
        await this.#release(name);
        return "done";
      }
      return (await this.#look(name)).record ? "lost" : "done";
    });
  }

  async release(names) {
    // A client that never opened the folder owns nothing in it.
    if (!this.#owner) return;
    await inOrder(names ?? [...this.#owned], (name) => this.#alone(name, async () => {
      if (await this.#owns(name)) await this.#release(name);
    }));
  }

  async list(space, { after = "", open = false } = {}) {
    await this.#open();
    const parts = open ? ["open"] : ["open", "kept"];
    const all = (await Promise.all(parts.map((part) => readdir(this.#in(part))))).flat();
    const names = [...new Set(all)].filter((name) => name.startsWith(`${space}.`) && name > after).sort();
    const entries = [];
    for (let n = 0; n < names.length && entries.length <= PAGE; n += AT_ONCE) {
      const found = await inOrder(names.slice(n, n + AT_ONCE), (name) => this.#look(name));
      const shown = found.filter(({ record }) => record && !(open && record.until !== undefined));
      entries.push(...shown.map(({ name, record: { data }, whose }) => ({ name, data, whose })));
    }
    return { entries: entries.slice(0, PAGE), more: entries.length > PAGE };
  }

  async spend(space, what) {
    await this.#open();
    // No name of a record begins like this.
    const place = `days.${space}`;
    return this.#alone(place, async () => {
      await this.#wait(place);
      try {
        return await this.#spend(space, what);
      } finally {
        await rm(this.#in("claims", place), { force: true });
      }
    });
  }

  /** Releases everything. Calls of `put` after this are for the next client. */
  async close() {
    await this.#opening?.catch(() => {});
    const owner = this.#owner;
    if (!owner) return;
    clearInterval(this.#timer);
    await this.release();
    this.#owner = this.#opening = undefined;
    await this.#sweeping;
    await owner.end();
    leave(owner.id);
  }

  #in(...parts) {
    return join(this.#path, ...parts);
  }

  /** Opens the folder with the first call. If that fails, the next call tries again. */
  async #open() {
    this.#opening ??= host.root(() => this.#begin()).catch((error) => {
      this.#opening = undefined;
      throw notOpened(error);
    });
    await this.#opening;
  }

  async #begin() {
    await make(this.#path);
    await isOurs(this.#path);
    for (const part of PARTS) await make(this.#in(part));
    const owner = new Owner(this.#in("owners"));
    await owner.begin();
    this.#owner = owner;
    enter(owner.id);
    const sweep = () => {
      this.#sweeping = this.#sweep(owner).catch(() => {});
    };
    sweep();
    this.#timer = setInterval(sweep, SWEEP);
    this.#timer.unref?.();
  }

  /** Does the work on a name after all its earlier work. */
  async #alone(name, work) {
    const before = this.#turns.get(name);
    const turn = (async () => {
      await before?.catch(() => {});
      return work();
    })();
    this.#turns.set(name, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    }
  }

  /** Returns the data of a name, and its owner. Data without an owner counts as missing once its time is over. */
  async #look(name) {
    const holder = await holderOf(this.#in("claims", name));
    const isOther = holder !== undefined && holder !== this.#owner.id && (await this.#owner.isAlive(holder));
    const whose = holder === this.#owner.id ? "mine" : isOther ? "other" : "free";
    const record = await this.#read(name);
    return { name, whose, holder, record: record && (whose !== "free" || !this.#isOver(record)) ? record : undefined };
  }

  #isOver({ until }) {
    return until !== undefined && until <= this.#now();
  }

  async #owns(name) {
    return (await holderOf(this.#in("claims", name))) === this.#owner.id;
  }

  /** Claims a name: returns its data, `null` without data; `undefined` if another owner has it. */
  async #claim(name) {
    const wasOurs = await this.#owns(name);
    if ((await this.#owner.take(this.#in("claims", name))) !== this.#owner.id) return undefined;
    this.#owned.add(name);
    const record = await this.#read(name);
    if (!record || wasOurs || !this.#isOver(record)) return record?.data ?? null;
    await this.#erase(name);
    return null;
  }

  /** Claims a name that is not there; returns true if it is ours then. */
  async #begins(name) {
    const data = await this.#claim(name);
    if (data) await this.#release(name);
    return data === null;
  }

  async #release(name) {
    await rm(this.#in("claims", name), { force: true });
    this.#owned.delete(name);
  }

  async #read(name) {
    const kept = await bytesOf(this.#in("kept", name));
    if (!kept) {
      const data = await bytesOf(this.#in("open", name));
      return data && { data };
    }
    const line = kept.indexOf(10);
    const until = line > 0 ? Number(kept.subarray(0, line).toString()) : NaN;
    // Damaged data is returned as it is, and never dropped.
    return Number.isSafeInteger(until) ? { data: kept.subarray(line + 1), until } : { data: kept, until: Infinity };
  }

  /** Keeps data so that even a power cut leaves the old data or the new, never half of it. */
  async #write(name, data, keepFor) {
    const [opened, kept] = [this.#in("open", name), this.#in("kept", name)];
    const draft = join(this.#owner.folder, name);
    if (keepFor === undefined) {
      await durably(draft, [data]);
      await rename(draft, opened);
      await flush(this.#in("open"));
      // Data that is kept for a time counts as long as it is there, so the old data stays until the new is in its place.
      if (await isThere(unlink(kept))) await flush(this.#in("kept"));
      return;
    }
    const until = Math.max(0, Math.floor(this.#now() + keepFor));
    await durably(draft, [`${until}\n`, data]);
    await this.#note(name, until);
    await rename(draft, kept);
    await flush(this.#in("kept"));
    await rm(opened, { force: true });
  }

  /** Notes the time at which a name may be dropped. */
  async #note(name, until) {
    const day = this.#in("until", String(dayOf(until)));
    await make(day);
    await writeFile(join(day, name), "", { mode: 0o600 });
  }

  async #erase(name) {
    // The one that counts is deleted last.
    for (const part of ["open", "kept"]) {
      if (await isThere(unlink(this.#in(part, name)))) await flush(this.#in(part));
    }
  }

  /** Waits until no other client counts. */
  async #wait(place) {
    const path = this.#in("claims", place);
    let isOver = false;
    const alarm = new Alarm(() => (isOver = true), PATIENCE);
    try {
      while ((await this.#owner.take(path)) !== this.#owner.id) {
        if (isOver) throw refuse("store", "store", `another client counts in \`${path}\` for too long`);
        await pause(2 + Math.random() * 10);
      }
    } finally {
      alarm.clear();
    }
  }

  async #spend(space, what) {
    const path = (day) => this.#in("days", `${space}.${day}`);
    const days = (await readdir(this.#in("days"))).flatMap((name) => (name.startsWith(`${space}.`) ? [Number(name.slice(space.length + 1))] : []));
    return count(this.#now(), days, what, {
      read: async (day) => Object.entries(JSON.parse((await bytesOf(path(day))) ?? "{}")),
      write: async (day, entries) => {
        const draft = join(this.#owner.folder, `days.${space}`);
        await durably(draft, [JSON.stringify(Object.fromEntries(entries))]);
        await rename(draft, path(day));
        await flush(this.#in("days"));
      },
      drop: (day) => rm(path(day), { force: true }),
    });
  }

  /** Drops expired names, and the files of owners that are gone. */
  async #sweep(owner) {
    const isOver = () => this.#owner !== owner;
    for (const day of await readdir(this.#in("until"))) {
      if (Number(day) >= dayOf(this.#now())) continue;
      for (const name of await readdir(this.#in("until", day))) {
        if (isOver()) return;
        await this.#alone(name, () => this.#drop(name));
        await rm(this.#in("until", day, name), { force: true });
      }
      await rmdir(this.#in("until", day)).catch(() => {});
    }
    for (const id of await readdir(this.#in("owners"))) {
      if (isOver()) return;
      if (await this.#isGone(id)) await this.#bury(id);
    }
  }

  /** Drops a name whose time is over, unless it has an owner: then it comes again on another day. */
  async #drop(name) {
    const { whose, record } = await this.#look(name);
    if (whose === "mine" || whose === "other") return this.#note(name, this.#now());
    const kept = await this.#read(name);
    if (record || !kept || !this.#isOver(kept)) return undefined;
    if ((await this.#claim(name)) !== undefined) await this.#release(name);
  }

  /** Returns true if an owner is gone. A new owner has a folder before its socket answers, so a young folder is left alone. */
  async #isGone(id) {
    if (id === this.#owner.id || (await this.#owner.isAlive(id))) return false;
    const { mtimeMs } = await stat(this.#in("owners", id));
    return Math.abs(Date.now() - mtimeMs) > SWEEP;
  }

  /** Removes the claims of an owner that is gone, then what else it left. */
  async #bury(id) {
    for (const name of await readdir(this.#in("claims"))) {
      if (name.includes("~")) continue;
      await this.#alone(name, async () => {
        if ((await holderOf(this.#in("claims", name))) === id && (await this.#owner.take(this.#in("claims", name))) === this.#owner.id) {
          await this.#release(name);
        }
      });
    }
    await rm(this.#in("owners", id), { recursive: true, force: true });
  }
}

/** Makes a folder, and those above it. Node's own function for that never ends where none can be made, as in /proc. */
async function make(path) {
  const made = () => mkdir(path, { mode: 0o700 }).catch(unless("EEXIST"));
  await made().catch(async (error) => {
    if (error.code !== "ENOENT" || dirname(path) === path) throw error;
    await make(dirname(path));
    await made();
  });
}

/** Makes a folder ours, unless it is. Each format is named in its folder, and no other one is opened. */
async function isOurs(path) {
  const file = join(path, "format");
  if (!(await bytesOf(file))) {
    // Another process may be making it at this moment.
    const others = (await readdir(path)).filter((name) => !NOT_OURS.has(name) && !name.startsWith("format"));
    if (others.length > 0 && !(await bytesOf(file))) {
      throw refuse("store", "store", `the folder \`${path}\` is not empty, and no store of this version; give a folder of its own`);
    }
    const draft = `${file}.${randomBytes(8).toString("hex")}`;
    await durably(draft, [FORMAT]);
    await link(draft, file).catch(unless("EEXIST"));
    await rm(draft, { force: true });
    await flush(path);
  }
  const found = (await readFile(file, "utf8")).slice(0, 80);
  if (found !== FORMAT) throw refuse("store", "store", `the folder \`${path}\` has the format \`${found.trim()}\`, not \`${FORMAT.trim()}\`; give a folder of its own`);
}

/** Writes a file, and waits until it is on the disk. */
async function durably(path, pieces) {
  const file = await open(path, "w", 0o600);
  try {
    for (const piece of pieces) await file.writeFile(piece);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Flushes a folder, which keeps the names of its files; Windows can't open a folder as a file. */
async function flush(folder) {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  await handle.sync().finally(() => handle.close());
}

async function bytesOf(path) {
  return readFile(path).catch(unless("ENOENT"));
}

/** Returns true if a file was there for the operation. */
async function isThere(done) {
  return done.then(() => true, unless("ENOENT"));
}

function unless(code) {
  return (error) => {
    if (error.code !== code) throw error;
  };
}

/** The results of some work, that many at once. */
async function inOrder(items, work) {
  const found = [];
  for (let n = 0; n < items.length; n += AT_ONCE) found.push(...(await Promise.all(items.slice(n, n + AT_ONCE).map(work))));
  return found;
}
