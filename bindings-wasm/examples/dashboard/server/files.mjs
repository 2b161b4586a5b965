// What is served: the files of the page and the two of the package, read once. No request ever names a file of the disk.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

const page = fileURLToPath(new URL("../public", import.meta.url));
const hopline = dirname(createRequire(import.meta.url).resolve("hopline/package.json"));

/** By path: the bytes and their type. */
export const files = new Map();
for (const name of readdirSync(page)) add(`/${name}`, join(page, name));
for (const name of ["web.mjs", "core.wasm"]) add(`/hopline/${name}`, join(hopline, name));
files.set("/", files.get("/index.html"));

function add(path, file) {
  files.set(path, { bytes: readFileSync(file), type: TYPES[extname(file)] });
}
