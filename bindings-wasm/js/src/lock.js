import { readFile, writeFile, open as openFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { hostname } from "node:os";
import { basename, join } from "node:path";

/*
 * Node has no file locks, but the system keeps one thing for a process and takes it back however the process ends: a
 * socket that it listens on. A folder is held as long as somebody listens on the socket in it. Names of folders are
 * never used twice, so a folder whose holder is gone is free for good.
 */

/** The longest path that every system takes for a socket. */
const LONGEST = 100;

/** Holds a folder until the function that it gives is called, or the process ends. */
export async function hold(folder) {
  await writeFile(join(folder, "holder"), JSON.stringify(await machine()));
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

/** Whether somebody holds a folder, or may hold it: on another machine that can't be seen. */
export async function isHeld(folder) {
  const [holder, here] = [await readFile(join(folder, "holder"), "utf8").then(JSON.parse, () => undefined), await machine()];
  if (!holder || !((here.boot && holder.boot === here.boot) || holder.host === here.host)) return true;
  const { path, done } = await short(folder);
  try {
    return await new Promise((resolve) => {
      const guest = connect(path);
      guest.once("connect", () => (guest.destroy(), resolve(true)));
      guest.once("error", ({ code }) => resolve(code !== "ECONNREFUSED" && code !== "ENOENT"));
    });
  } finally {
    await done();
  }
}

/** The path of a folder's socket, by a way that is short enough. */
async function short(folder) {
  const nothing = async () => {};
  if (process.platform === "win32") return { path: `\\\\.\\pipe\\hopline-${basename(folder)}`, done: nothing };
  const path = join(folder, "socket");
  if (path.length <= LONGEST || process.platform !== "linux") return { path, done: nothing };
  const handle = await openFile(folder, "r");
  return { path: `/proc/self/fd/${handle.fd}/socket`, done: () => handle.close() };
}

/** This machine since it was started: processes of two machines can't see whether the other lives. */
async function machine() {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  return { boot: boot.trim(), host: hostname() };
}
