// The page's own backend. The server serves the page, and has the API key, so that the page has none.
//
//     HOPLINE_BASE_URL=https://host/v1 HOPLINE_API_KEY=… node server.mjs
//
// A visitor who reaches it can spend the account's money, so it listens on loopback only. Put your own login before it.
import { createHmac } from "node:crypto";
import { createServer } from "node:http";

import { relay, toNode } from "hopline/backend";

import { files, send } from "./server/files.mjs";

const { HOPLINE_BASE_URL: baseUrl, HOPLINE_API_KEY: apiKey, HOST: host = "127.0.0.1", PORT: port = "8080" } = process.env;
/** The page's address as the browser sees it, where that is not this server's own. */
const origin = process.env.ORIGIN;

if (!baseUrl || !apiKey) {
  console.error("dashboard: set HOPLINE_BASE_URL and HOPLINE_API_KEY, or run `node sandbox.mjs`, which needs no account");
  process.exit(1);
}
/** The owner of the page's records, in place of the key: another key has other records. */
const account = createHmac("sha256", apiKey).update(`hopline dashboard ${baseUrl}`).digest("hex").slice(0, 16);

let api;
try {
  const allow = ["listProducts", "getBalance", "createSession", "getSession", "rotateSession", "renewSession", "terminateSession"];
  api = toNode(relay({ baseUrl, apiKey, mount: "/api", allow, authorize: () => ({ account }) }));
} catch (error) {
  console.error(`dashboard: ${error.message}`);
  process.exit(1);
}

const SECURITY = {
  "content-security-policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000, maxHeaderSize: 8192 }, (request, response) => {
  for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value);
  const [path] = request.url.split("?", 1);
  // A name of another site may point here, and its pages would be of this address then.
  if (!own.includes(request.headers.host)) return plain(response, 403, "this server answers its own page only");
  if (path.startsWith("/api/")) return api(request, response);
  const file = files.get(path);
  if (request.method === "GET" && path === "/account") return json(response, { account });
  if (file && ["GET", "HEAD"].includes(request.method)) return send(file, request, response);
  return plain(response, 404, "this server has no such page");
});

function plain(response, status, text) {
  response.writeHead(status, { "content-type": "text/plain", "cache-control": "no-store", connection: "close" });
  response.end(text);
}

function json(response, value) {
  response.writeHead(200, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(value));
}

/** The hosts of the page's address. */
let own = [];
server.listen(Number(port), host, () => {
  const { port } = server.address();
  own = origin ? [new URL(origin).host] : ["127.0.0.1", "localhost", "[::1]"].map((name) => `${name}:${port}`);
  console.log(`http://${host}:${port}/`);
});
