import { access, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/*
 * A claim is an empty file in the folder of the client that has it, so it goes wherever the folder goes: to whoever takes
 * it over. It must not be missed while it moves, so what a client is about to empty is looked at before the client's own.
 */

/** Where a client's claims are in its folder. */
export const CLAIMS = "claims";

export async function announce(folder, name) {
  await writeFile(join(folder, CLAIMS, name), "");
}

export async function withdraw(folder, name) {
  await rm(join(folder, CLAIMS, name), { force: true });
}

/** Whether a claim is in any folder but our own. */
export async function elsewhere(path, own, name, folders) {
  for (;;) {
    const found = await Promise.all((await folders(path)).filter((folder) => folder !== own).map((folder) => has(folder, name, folders)));
    if (found.some((has) => has === true)) return true;
    // One moved meanwhile: it is somewhere else now.
    if (!found.includes(undefined)) return false;
  }
}

/** Whether a claim is in a folder, or in one that its client was about to take over; nothing if the folder moved. */
export async function has(folder, name, folders) {
  try {
    for (const inner of await folders(folder)) if (await has(inner, name, folders)) return true;
    if (await exists(join(folder, CLAIMS, name))) return true;
    return (await exists(folder)) ? false : undefined;
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

const exists = (path) => access(path).then(() => true, () => false);
