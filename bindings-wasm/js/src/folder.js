import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";

import { announce, elsewhere, has, withdraw, CLAIMS } from "./claims.js";
import { refuse } from "./error.js";
import { foreign, taken } from "./intents.js";
import { beat, hold, isFresh, isHeld } from "./lock.js";

/** What the folders of clients begin with. */
const CLIENT = "node-";
const RECORD = ".json";
/** What a folder begins with that nobody may see yet. */
const DRAFT = ".";
/** What stands for a claim that came with a folder that was taken over. */
const OURS = Promise.resolve();

/**
 * Records as files, in a folder that processes share. Each client holds a folder of its own in it, and takes over those
 * of clients that are gone: a folder is renamed into the new holder's own, which only one can do.
 */
export class FolderStore {
  #path;
  #own;
  #release;
  /** Ends the signs of life. */
  #rest;
  /** Says whose records are, and takes them in. */
  #client;
  /** One taking over at a time, and nobody goes on before what was taken over is known to the client. */
  #adopting = Promise.resolve();
  /** By name: the claims that are this client's, or may be in a moment. */
  #claims = new Map();
  /** By name: those that are being given up. */
  #leaving = new Map();

  constructor(path) {
    if (typeof path !== "string" || path === "") throw refuse("invalid", "store", "`path` must be the name of a folder");
    this.#path = resolve(path);
  }

  async open(client) {
    if (this.#own) throw refuse("store", "store", "this store serves another client; give each client one of its own");
    this.#client = client;
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    await tidy(this.#path);
    const name = CLIENT + randomBytes(8).toString("hex");
    const [draft, own] = [join(this.#path, DRAFT + name), join(this.#path, name)];
    try {
      await mkdir(join(draft, CLAIMS), { recursive: true, mode: 0o700 });
      // It is held before others can see it.
      this.#release = await hold(draft);
      await rename(draft, own);
    } catch (error) {
      await this.#release?.();
      this.#release = undefined;
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
    this.#rest = beat(own);
    this.#own = own;
  }

  /** Takes over what clients of the same account left that are gone; or only the folder that has a claim. */
  adopt(claim) {
    const adopted = this.#adopting.then(() => this.#adopt(claim));
    this.#adopting = adopted.catch(() => {});
    return adopted;
  }

  async #adopt(claim) {
    for (const folder of await folders(this.#path)) {
      if (folder === this.#own || (claim && !(await has(folder, claim, folders))) || (await isHeld(folder))) continue;
      // Whose records they are is for the core to say; those of others are left where their owner will look for them.
      const records = await read(folder).catch(unlessGone);
      if (!records) continue;
      if (this.#client.fits(records)) await rename(folder, join(this.#own, folder.slice(this.#path.length + 1))).catch(unlessGone);
      else if (claim) throw foreign("store");
    }
    const [records, claims] = [[], []];
    try {
      const taken = await folders(this.#own);
      for (const folder of taken) await this.#empty(folder, records, claims);
      if (taken.length > 0) await flush(this.#own);
    } finally {
      // What was moved is ours, whatever comes of the rest.
      this.#client.take(records);
      for (const name of claims) this.#claims.set(name, OURS);
    }
  }

  /** Moves all that is in a folder that was taken over, and in those that it had taken over, to our own: claims last. */
  async #empty(folder, records, claims) {
    for (const inner of await folders(folder)) await this.#empty(inner, records, claims);
    for (const [record, data] of await read(folder, false)) {
      await rename(join(folder, record + RECORD), join(this.#own, record + RECORD));
      records.push([record, data]);
    }
    for (const name of await readdir(join(folder, CLAIMS)).catch(none)) {
      await rename(join(folder, CLAIMS, name), join(this.#own, CLAIMS, name));
      claims.push(name);
    }
    await rm(folder, { recursive: true, force: true });
  }

  /**
   * Makes a name this client's alone. It says that it wants the name, and only then looks whether somebody else does: of
   * two at once both see the other.
   */
  async claim(name) {
    if (!this.#claims.has(name)) this.#claims.set(name, this.#claim(name));
    const claim = this.#claims.get(name);
    try {
      await claim;
    } catch (error) {
      if (this.#claims.get(name) === claim) this.#claims.delete(name);
      throw error;
    }
  }

  async #claim(name) {
    await this.#leaving.get(name);
    for (let tries = 0; tries < 5; tries += 1) {
      const own = this.#folder();
      let claimed = false;
      await announce(own, name);
      try {
        claimed = await this.#wins(own, name);
      } finally {
        // One that was taken over meanwhile stays with its records.
        if (!claimed && this.#claims.get(name) !== OURS) await withdraw(own, name);
      }
      if (claimed) return;
      await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 50));
    }
    throw taken("store");
  }

  /** Whether a claim that was announced is ours. */
  async #wins(own, name) {
    // Of what an earlier taking over left in our own folder nobody knows what it stands for.
    const isUnknown = (await folders(own)).length > 0;
    if (!isUnknown && (await this.#free(own, name))) return true;
    await this.adopt(name);
    return this.#claims.get(name) === OURS || this.#free(own, name);
  }

  /** Whether nobody else has a claim. What we were about to take over with it is known by then. */
  async #free(own, name) {
    const free = !(await elsewhere(this.#path, own, name, folders));
    await this.#adopting;
    return free;
  }

  /** Gives up all claims but these. */
  async keepClaims(names) {
    const given = [...this.#claims.keys()].filter((name) => !names.has(name) && !this.#leaving.has(name));
    for (const name of given) {
      this.#claims.delete(name);
      this.#leaving.set(name, withdraw(this.#folder(), name).finally(() => this.#leaving.delete(name)));
    }
    await Promise.all(given.map((name) => this.#leaving.get(name)));
  }

  /** Keeps a record so that even a power cut leaves it old or new, never half of it. */
  async keep(record, data) {
    const path = join(this.#folder(), record + RECORD);
    const draft = await open(`${path}.draft`, "w", 0o600);
    try {
      await draft.writeFile(data);
      await draft.sync();
    } finally {
      await draft.close();
    }
    await rename(`${path}.draft`, path);
    await flush(this.#own);
  }

  async remove(record) {
    await rm(join(this.#folder(), record + RECORD), { force: true });
    await flush(this.#own);
  }

  /** Lets go: what is left is for the next client. */
  async close() {
    const [own, release] = [this.#own, this.#release];
    this.#own = this.#release = undefined;
    this.#claims.clear();
    this.#rest?.();
    if (own && (await read(own).catch(none)).length === 0) await rm(own, { recursive: true, force: true });
    await release?.();
  }

  #folder() {
    if (!this.#own) throw refuse("store", "store", `the folder \`${this.#path}\` could not be opened`);
    return this.#own;
  }
}

/** Removes what clients left that died while they opened a folder. */
async function tidy(path) {
  for (const name of await readdir(path)) {
    const draft = join(path, name);
    // One that can't be removed, such as another user's, is in nobody's way.
    if (name.startsWith(DRAFT + CLIENT) && !(await isFresh(draft))) await rm(draft, { recursive: true, force: true }).catch(() => {});
  }
}

/** The folders of clients in a folder. */
async function folders(path) {
  const names = await readdir(path);
  return names.filter((name) => name.startsWith(CLIENT)).map((name) => join(path, name));
}

/** The records in a client's folder, and in those that it was about to take over. */
async function read(folder, deep = true) {
  const records = [];
  for (const name of await readdir(folder)) {
    if (name.endsWith(RECORD)) records.push([name.slice(0, -RECORD.length), await readFile(join(folder, name), "utf8")]);
    else if (deep && name.startsWith(CLIENT)) records.push(...(await read(join(folder, name))));
  }
  return records;
}

/** The names in a folder are kept by the folder itself; Windows can't open one as a file. */
async function flush(folder) {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  await handle.sync().finally(() => handle.close());
}

function unlessGone(error) {
  if (error.code !== "ENOENT") throw error;
}

function none(error) {
  unlessGone(error);
  return [];
}
