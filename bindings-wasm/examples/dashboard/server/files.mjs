// The served files: those of the page and the two of the package, read and compressed once. No request ever names a file of the disk.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

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

/** By path: the bytes, as they are and compressed, their ETag and their type. */
export const files = new Map();
for (const name of readdirSync(page)) add(`/${name}`, join(page, name));
for (const name of ["web.mjs", "shared.mjs", "rest.mjs", "core.wasm"]) add(`/hopline/${name}`, join(hopline, name));
files.set("/", files.get("/index.html"));

function add(path, file) {
  const bytes = readFileSync(file);
  const etag = `W/"${createHash("sha256").update(bytes).digest("base64url")}"`;
  files.set(path, { bytes, gzip: gzipSync(bytes), etag, type: TYPES[extname(file)] });
}

/** Sends a file, compressed if the browser accepts that. One that the browser has already is not sent again. */
export function send({ bytes, gzip, etag, type }, { method, headers }, response) {
  for (const [name, value] of [["cache-control", "no-cache"], ["etag", etag], ["vary", "accept-encoding"]]) response.setHeader(name, value);
  if (headers["if-none-match"] === etag) return response.writeHead(304).end();
  const zipped = /\bgzip\b/.test(headers["accept-encoding"]);
  if (zipped) response.setHeader("content-encoding", "gzip");
  const body = zipped ? gzip : bytes;
  response.writeHead(200, { "content-type": type, "content-length": body.length });
  response.end(method === "HEAD" ? undefined : body);
}
