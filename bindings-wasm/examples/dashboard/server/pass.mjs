// Passes on what the page may do. The allowed operations are named here; their addresses come from the package's table.
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

import { operations } from "hopline";

/** The methods of `AgentClient` that the page calls. */
const ALLOWED = ["listProducts", "getBalance", "createSession", "getSession", "rotateSession", "renewSession", "terminateSession"];

/** No operation's body is longer, in bytes. */
const MAX_BODY = 16_384;
/** A little longer than the client waits for an answer, so that it is the one to give up. */
const TIMEOUT_MS = 25_000;

/** Only these headers go either way; cookies, connection headers and the caller's own key do not. */
const REQUEST = ["accept", "content-type", "idempotency-key"];
const RESPONSE = ["content-type", "date", "retry-after"];

// A parameter is one segment of plain letters. Nothing that is escaped is let through, so no path can mean two things.
const routes = ALLOWED.map((name) => {
  const { method, path } = operations[name];
  const segments = path.split("/").map((segment) => (segment.startsWith("{") ? "(?!\\.+(?:/|$))[\\w.~-]+" : segment));
  return { method, pattern: new RegExp(`^${segments.join("/")}$`) };
});

/** Sends a request on with the key, and its answer back. */
export async function pass({ baseUrl, apiKey }, request, response, path, query) {
  if (!routes.some(({ method, pattern }) => method === request.method && pattern.test(path))) throw Refusal.route(request.method, path);
  const body = await read(request);
  const headers = { ...only(REQUEST, (name) => request.headers[name]), "x-api-key": apiKey };
  const url = baseUrl.replace(/\/+$/, "") + path + (query ? `?${query}` : "");
  let answer;
  try {
    answer = await fetch(url, { method: request.method, headers, body, redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch {
    // The API may have done it. An answer in its envelope would say that it has ended; a page of a gateway says that nobody
    // knows, and the client asks again with the same key.
    response.writeHead(502, { "content-type": "text/plain", "cache-control": "no-store" });
    return response.end("the API gave no answer");
  }
  response.writeHead(answer.status, { ...only(RESPONSE, (name) => answer.headers.get(name)), "cache-control": "no-store" });
  // One that breaks off breaks off here too.
  if (answer.body) await pipeline(Readable.fromWeb(answer.body), response);
  else response.end();
}

/** A refusal of this server's own, in the API's envelope. Its codes settle no purchase, as the request was not passed on. */
export class Refusal extends Error {
  constructor(status, code, message, details) {
    super(message);
    Object.assign(this, { status, code, details });
  }

  static route(method, path) {
    return new Refusal(404, "ROUTE_NOT_FOUND", "this server passes on no such request", { method, path });
  }

  envelope() {
    const error = { code: this.code, message: this.message, details: this.details };
    return { success: false, data: null, error, meta: { request_id: randomUUID(), timestamp: new Date().toISOString() } };
  }
}

async function read(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > MAX_BODY) throw new Refusal(400, "INVALID_REQUEST", `a body may have ${MAX_BODY} bytes`);
    chunks.push(chunk);
  }
  return length > 0 ? Buffer.concat(chunks) : undefined;
}

function only(names, value) {
  return Object.fromEntries(names.map((name) => [name, value(name)]).filter(([, found]) => found != null));
}
