import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { link, mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";

import { refuse } from "./error.js";

/*
 * Node has no file locks, but the system keeps one thing for a process and takes it back however the process ends: a socket that it listens
 * on. An owner lives as long as a process listens on the socket in its folder. Its id is never used again, so an owner that is gone is gone
 * for good. All processes that share the folder must be on one machine, where a socket can be seen.
 *
 * A claim is a hard link to a file that holds its owner's id: there is one, or there is none, and never one without an id.
 */

/** The longest path that every system takes for a socket, in bytes: macOS has the shortest. */
const LONGEST = 103;
/** The errors of a connection where no process listens. Any other error, such as a full queue, is no sign of death. */
const GONE = new Set(["ECONNREFUSED", "ENOENT", "ENOTDIR"]);
/** The id of a claim that can't be read, as after a power cut: it has no owner. */
const NOBODY = "nobody";

/** One opening of a folder. */
export class Owner {
  id = randomBytes(8).toString("hex");
  #owners;
  #server;
  /** Releases the path of its socket: the system removes that path when the server is closed, so it must be ours until then. */
  #done = async () => {};
  /** The file that claims are links to, and the number of its links, which is limited. */
  #file;
  #files = 0;

  constructor(owners) {
    this.#owners = owners;
  }

  /** The folder of this owner's own files. */
  get folder() {
    return join(this.#owners, this.id);
  }

  async begin() {
    await mkdir(this.folder, { mode: 0o700 });
    try {
      const { path, done } = await socketOf(this.#owners, this.id);
      this.#done = done;
      this.#server = await listen(path);
      await this.#nextFile();
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  async end() {
    const server = this.#server;
    this.#server = undefined;
    if (server) await new Promise((resolve) => server.close(resolve));
    await this.#done();
    this.#done = async () => {};
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Makes a claim ours unless another living owner has it, and returns the id of its owner then. */
  async take(path) {
    for (;;) {
      if (await this.#link(path)) return this.id;
      const holder = await holderOf(path);
      if (holder === undefined) continue;
      if (holder === this.id || (await this.isAlive(holder))) return holder;
      // Of all clients that see that it is gone, only the one that has the marker may take its place.
      const marker = `${path}~${holder}`;
      const first = await this.take(marker);
      if (first !== this.id) return first;
      if ((await holderOf(path)) === holder) {
        await rename(marker, path);
        return this.id;
      }
      await rm(marker, { force: true });
    }
  }

  /** Returns true if an owner lives. */
  async isAlive(id) {
    if (id === NOBODY) return false;
    const { path, done } = await socketOf(this.#owners, id);
    try {
      const code = await new Promise((resolve) => {
        const guest = connect(path);
        guest.once("connect", () => (guest.destroy(), resolve(undefined)));
        guest.once("error", (error) => resolve(error.code));
      });
      return !GONE.has(code);
    } finally {
      await done();
    }
  }

  async #link(path) {
    try {
      await link(this.#file, path);
      return true;
    } catch (error) {
      if (error.code === "EEXIST") return false;
      if (error.code !== "EMLINK") throw error;
      await this.#nextFile();
      return this.#link(path);
    }
  }

  async #nextFile() {
    const file = join(this.folder, `id.${this.#files}`);
    this.#files += 1;
    await writeFile(file, this.id, { mode: 0o600 });
    this.#file = file;
  }
}

/** Returns the id of a claim's owner; `undefined` if there is no claim. */
export async function holderOf(path) {
  try {
    const id = await readFile(path, "utf8");
    return /^[0-9a-f]{16}$/.test(id) ? id : NOBODY;
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function listen(path) {
  const server = createServer((guest) => guest.destroy());
  // A connection that ends does not matter.
  server.on("connection", (guest) => guest.on("error", () => {}));
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    // In this process itself: in a worker of a cluster its primary would listen, by a path of its own.
    server.listen({ path, exclusive: true }, resolve);
  });
  server.unref();
  return server;
}

/** The path of an owner's socket, in a form that is short enough. */
async function socketOf(owners, id) {
  const path = socketPath(owners, id, process.platform);
  const length = Buffer.byteLength(path);
  if (length <= LONGEST || process.platform === "win32") return { path, done: async () => {} };
  if (process.platform !== "linux") {
    const why = `is too long for a socket on this system: its socket's path has ${length} of at most ${LONGEST} bytes; give a shorter path`;
    throw refuse("store", "store", `the path \`${dirname(owners)}\` ${why}`);
  }
  // Without such a folder, no process listens in it. Other failures are no sign of death.
  const handle = await open(join(owners, id), "r").catch((error) => {
    if (!GONE.has(error.code)) throw error;
  });
  if (!handle) return { path: join("/proc/self/fd/none", "socket"), done: async () => {} };
  return { path: `/proc/self/fd/${handle.fd}/socket`, done: () => handle.close() };
}

/** The address that an owner listens on. Windows keeps pipes outside of folders. */
export function socketPath(owners, id, platform) {
  return platform === "win32" ? `\\\\.\\pipe\\hopline-${id}` : join(owners, id, "socket");
}
