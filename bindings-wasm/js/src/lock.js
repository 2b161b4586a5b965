import { readFile, stat, utimes, writeFile, open as openFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { hostname } from "node:os";
import { join, win32 } from "node:path";

/*
 * Node has no file locks, but the system keeps one thing for a process and takes it back however the process ends: a
 * socket that it listens on. A folder is held as long as somebody listens on the socket in it. Names of folders are
 * never used twice, so a folder whose holder is gone is free for good. A socket of another machine can't be seen, so the
 * holder also gives a sign of life again and again, and a folder without one for long enough is free, too.
 */

/** The longest path that every system takes for a socket. */
const LONGEST = 100;
const HOLDER = "holder";
/** How often a sign of life is given, and for how long it counts, in milliseconds. */
const BEAT = 30_000;
const LEASE = 5 * 60_000;

/** Holds a folder until the function that it gives is called, or the process ends. */
export async function hold(folder) {
  await writeFile(join(folder, HOLDER), JSON.stringify(await machine()));
  const server = createServer((guest) => guest.destroy());
  // A guest that goes away is of no interest.
  server.on("connection", (guest) => guest.on("error", () => {}));
  const { path, done } = await short(folder);
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  server.unref();
  return async () => {
    await new Promise((resolve) => server.close(resolve));
    await done();
  };
}

/** Gives signs of life in a folder that is held, until the function that it gives is called. */
export function beat(folder) {
  const timer = setInterval(() => {
    const now = new Date();
    // A folder that was taken over meanwhile is missed by the next save.
    utimes(join(folder, HOLDER), now, now).catch(() => {});
  }, BEAT);
  timer.unref();
  return () => clearInterval(timer);
}

/** Whether somebody holds a folder: where that can't be seen, whether its last sign of life is recent. */
export async function isHeld(folder) {
  const [holder, here] = [await readFile(join(folder, HOLDER), "utf8").then(JSON.parse).catch(() => undefined), await machine()];
  if (!holder || !((here.boot && holder.boot === here.boot) || holder.host === here.host)) return isFresh(folder);
  const { path, done } = await short(folder);
  try {
    const found = await new Promise((resolve) => {
      const guest = connect(path);
      guest.once("connect", () => (guest.destroy(), resolve("held")));
      guest.once("error", ({ code }) => resolve(code));
    });
    return found === "held" || (found !== "ECONNREFUSED" && found !== "ENOENT" && (await isFresh(folder)));
  } finally {
    await done();
  }
}

/** Whether a folder has given a sign of life of late, or was made a moment ago. One of the far future is none. */
export async function isFresh(folder) {
  try {
    const { mtimeMs } = await stat(join(folder, HOLDER)).catch(() => stat(folder));
    return Math.abs(Date.now() - mtimeMs) < LEASE;
  } catch {
    // It moved: whoever moved it has it.
    return true;
  }
}

/** The path of a folder's socket, by a way that is short enough. */
async function short(folder) {
  const path = socketPath(folder, process.platform);
  if (path.length <= LONGEST || process.platform !== "linux") return { path, done: async () => {} };
  const handle = await openFile(folder, "r");
  return { path: `/proc/self/fd/${handle.fd}/socket`, done: () => handle.close() };
}

/**
 * Where a folder's holder listens. Windows keeps pipes outside of folders: one is named after the folder, which is held as a
 * draft, with a dot before its name, and found without it.
 */
export function socketPath(folder, platform) {
  if (platform !== "win32") return join(folder, "socket");
  return `\\\\.\\pipe\\hopline-${win32.basename(folder).replace(/^\./, "")}`;
}

/** This machine since it was started: processes of two machines can't see whether the other lives. */
async function machine() {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  return { boot: boot.trim(), host: hostname() };
}
