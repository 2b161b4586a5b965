// Programs that a test needs beside Node.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

function isThere(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Why a test without that program is skipped. Where all is to be checked it is not, and fails. Debian has some where only root looks. */
export function lacks(name) {
  const variable = `HOPLINE_${name.toUpperCase()}`;
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"];
  const isFound = process.env.CI === "true" || variable in process.env || folders.some((folder) => isThere(join(folder, name)));
  return !isFound && `${name} is not installed; ${variable} may name the program`;
}
