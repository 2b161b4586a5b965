// Programs and libraries that a test needs beside Node and the package.
import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";

/** A library that the package itself does not need: they are where the tools of these tests are. */
export const tool = createRequire(join(process.env.HOPLINE_VECTORS, "../hosts/node/package.json"));

const place = (path) => join(dirname(dirname(tool.resolve("undici/package.json"))), path);

/** By name: the command of each other runtime that the README names. A system may have no program for it. */
export const RUNTIMES = { Bun: place("bun/bin/bun"), Deno: [place("deno/deno"), "run", "--allow-all"] };

/** A later Node than the one that runs the tests, for tools that need it. */
export const NODE24 = place("node24/bin/node");

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
