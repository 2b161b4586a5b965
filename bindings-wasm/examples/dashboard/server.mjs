// The page's own backend. The server serves the page, and has the API key, so that the page has none.
//
//     HOPLINE_BASE_URL=https://host/v1 HOPLINE_API_KEY=… node server.mjs
//
// A visitor who reaches it can spend the account's money, so it listens on loopback only. Put your own login before it.
import { createHmac } from "node:crypto";
import { createServer } from "node:http";

import { AgentClient } from "hopline";

import { files, send } from "./server/files.mjs";
import { Refusal, pass } from "./server/pass.mjs";

const { HOPLINE_BASE_URL: baseUrl, HOPLINE_API_KEY: apiKey, HOST: host = "127.0.0.1", PORT: port = "8080" } = process.env;
/** The page's address as the browser sees it, where that is not this server's own. */
const origin = process.env.ORIGIN;

if (!baseUrl || !apiKey) {
  console.error("dashboard: set HOPLINE_BASE_URL and HOPLINE_API_KEY, or run `node sandbox.mjs`, which needs no account");
  process.exit(1);
}
try {
  // Nothing is sent: the client refuses an address that a key must not be sent to.
  new AgentClient({ baseUrl, apiKey });
} catch (error) {
  console.error(`dashboard: ${error.message}`);
  process.exit(1);
}

/** The owner of the page's records, in place of the key: another key has other records. */
const account = createHmac("sha256", apiKey).update(`hopline dashboard ${baseUrl}`).digest("hex").slice(0, 16);

const SECURITY = {
  "content-security-policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const server = createServer({ requestTimeout: 30_000, headersTimeout: 10_000, maxHeaderSize: 8192 }, async (request, response) => {
  try {
    for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value);
    checkOrigin(request);
    const [path, query] = request.url.split("?", 2);
    if (path === "/account") return json(response, 200, { account });
    if (path.startsWith("/api/")) return await pass({ baseUrl, apiKey }, request, response, path.slice("/api".length), query);
    const file = files.get(path);
    if (!file || !["GET", "HEAD"].includes(request.method)) throw Refusal.route(request.method, path);
    send(file, request, response);
  } catch (error) {
    if (!(error instanceof Refusal)) return response.destroy();
    // The rest of a refused request is not read.
    response.setHeader("connection", "close");
    json(response, error.status, error.envelope());
  }
});

/** No other site may use this one's money: neither by a form or script of its own, nor by a name that it points here. */
function checkOrigin({ method, headers }) {
  const own = origin ? [origin] : ["127.0.0.1", "localhost", "[::1]"].map((name) => `http://${name}:${server.address().port}`);
  const sent = headers.origin ?? (headers["sec-fetch-site"] === "same-origin" ? "same-origin" : undefined);
  const foreign =
    !own.some((address) => new URL(address).host === headers.host) ||
    (headers.origin !== undefined && !own.includes(headers.origin)) ||
    !["same-origin", "none", undefined].includes(headers["sec-fetch-site"]) ||
    (!["GET", "HEAD"].includes(method) && sent === undefined);
  if (foreign) throw new Refusal(403, "AUTH_INSUFFICIENT_PERMISSION", "this server answers its own page only");
}

function json(response, status, value) {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(value));
}

server.listen(Number(port), host, () => console.log(`http://${host}:${server.address().port}/`));
