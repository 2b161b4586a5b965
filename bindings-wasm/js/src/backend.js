// The entry `hopline/backend`: the relay of an app's own backend, from Request to Response, without the core. backend.d.ts documents it.
import { agentOperations, resellerOperations } from "../gen/operations.js";
import { connected, connections } from "./connections.js";

const OPERATIONS = /* @__PURE__ */ Object.assign({}, agentOperations, resellerOperations);

/** These headers go either way, and no others: no cookies, no connection headers, no key of the caller's. */
const [UP, DOWN] = [["accept", "content-type", "idempotency-key"], ["content-type", "date", "retry-after"]];
/** The codes of refusals. None of them ends a purchase that was sent before under the same key. */
const CODES = {
  401: "AUTH_INVALID_KEY", 403: "AUTH_INSUFFICIENT_PERMISSION", 404: "ROUTE_NOT_FOUND", 413: "REFUSED_BY_BACKEND", 422: "REFUSED_BY_BACKEND", 429: "RATE_LIMIT_EXCEEDED",
};
/** The `fetch` at the time of loading. A program that replaces it later answers for its own one. */
const ownFetch = globalThis.fetch;
const NO_STORE = { "cache-control": "no-store" };

export function refuse(status, message, { retryAfter } = {}) {
  if (!Object.hasOwn(CODES, status)) throw new TypeError(`refuse: \`status\` must be one of ${Object.keys(CODES).join(", ")}: the page's client would take another one for an answer of the service`);
  const headers = { ...NO_STORE, ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }) };
  const meta = { request_id: crypto.randomUUID(), timestamp: new Date().toISOString() };
  // The envelopes of both APIs in one.
  return Response.json({ success: false, code: status, message, data: null, error: { code: CODES[status], message }, meta }, { status, headers });
}

export function relay(options) {
  const { mount, authorize, check, onAnswer, maxBody = 16_384, timeoutMs = 25_000, fetch: chosen } = options;
  if (typeof authorize !== "function") throw new TypeError("relay: `authorize` is required, a function that says who may spend the account's money");
  if (!/^(\/[\w.~-]+)+$/.test(mount)) throw new TypeError("relay: `mount` must be the path of the relay on this server, such as \"/api/v1\"");
  const [base, routes, origins] = [baseOf(options.baseUrl), routesOf(options.allow), options.origins && new Set(options.origins)];
  const login = loginOf(routes[0].api, options);

  /** Answers a request of the page: by a refusal, or by the answer of the service. */
  async function answer(request, url) {
    if (!isOwn(request, hostIn(request, url), origins)) return refuse(403, "this server answers its own pages only");
    const path = url.pathname.startsWith(`${mount}/`) ? url.pathname.slice(mount.length) : "";
    const [route, params] = routeOf(routes, request.method, path);
    if (!route) return refuse(404, "this server passes on no such request");
    const operation = route.name;
    const who = await authorize(request, { operation, params });
    if (who instanceof Response) return who;
    if (!who) return refuse(403, "this is not allowed to this user");
    if (typeof who.account !== "string" || !who.account) throw new TypeError("relay: `authorize` must return an object with the `account` of a user, a Response, or false");
    const body = await bodyOf(request, maxBody).catch(() => null);
    if (body === null) return refuse(422, "the body of the request broke off");
    if (!body) return refuse(413, `the body of a request may have ${maxBody} bytes`);
    if (check) {
      const read = contentOf(body);
      if (!read) return refuse(422, "the body must be JSON in which no member stands twice");
      const refusal = await check({ operation, params, account: who.account, body: read.content });
      if (refusal !== undefined) return refusal;
    }
    return pass({ operation, account: who.account, method: request.method, target: base + path + url.search, body, headers: await login(request), given: request.headers });
  }

  /** Sends a request on, once. */
  async function pass({ operation, account, method, target, body, headers, given }) {
    const begun = Date.now();
    for (const name of UP) if (given.has(name)) headers.set(name, given.get(name));
    let [reply, own] = [];
    try {
      // The program's own is that of the moment, since a test may replace it.
      const send = chosen ?? globalThis.fetch;
      own = method === "GET" ? undefined : connected(connections(send, send !== ownFetch));
      const found = await send(target, { method, headers, body: body.length > 0 ? body : undefined, redirect: "manual", signal: AbortSignal.timeout(timeoutMs), ...own?.option });
      const down = new Headers(NO_STORE);
      for (const name of DOWN) if (found.headers.has(name)) down.set(name, found.headers.get(name));
      reply = new Response(found.body, { status: found.status, headers: down });
    } catch {
      // Whether the service did it is not known. Without an envelope the client asks again with the same key.
      reply = new Response("the API gave no answer", { status: 502, headers: { "content-type": "text/plain", ...NO_STORE } });
    }
    // The wait ends with the body, which is on its way.
    own?.close?.().catch(() => {});
    quietly(() => onAnswer?.({ operation, account, status: reply.status, ms: Date.now() - begun }));
    return reply;
  }

  return async (request) => {
    const url = new URL(request.url);
    const origin = request.headers.get("origin");
    const shares = origin !== null && hostOf(origin) !== hostIn(request, url) && Boolean(origins?.has(origin));
    if (shares && request.method === "OPTIONS") return shared(new Response(null, { status: 204, headers: PREFLIGHT }), origin);
    let reply;
    try {
      reply = await answer(request, url);
    } catch (error) {
      // Nothing was passed on.
      console.error("hopline: the relay refused a request since one of its functions failed:", error);
      reply = refuse(403, "this server could not check the request, which it did not pass on; try again later");
    }
    return shares ? shared(reply, origin) : reply;
  };
}

const PREFLIGHT = { "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE", "access-control-allow-headers": `${UP.join(", ")}, authorization`, "access-control-max-age": "600" };

/** An answer that a page of another address may read. */
function shared(reply, origin) {
  const headers = { "access-control-allow-origin": origin, "access-control-allow-credentials": "true", "access-control-expose-headers": DOWN.join(", "), vary: "origin" };
  const open = new Response(reply.body, reply);
  for (const [name, value] of Object.entries(headers)) open.headers.set(name, value);
  return open;
}

/** Returns true if a request comes from a page of this server, or from a program: no form and no script of another site. */
function isOwn({ method, headers }, host, origins) {
  const [origin, site] = [headers.get("origin"), headers.get("sec-fetch-site")];
  if (origin === null) {
    const isSafe = ["GET", "HEAD"].includes(method) ? ["same-origin", "none", null].includes(site) : site === "same-origin";
    // A browser sends its cookies by itself, but no token.
    return isSafe || (site === null && /^bearer /i.test(headers.get("authorization")));
  }
  if (origins?.has(origin)) return true;
  return origins === undefined && hostOf(origin) === host && ["same-origin", null].includes(site);
}

/** The host that a request asked for. Next puts the name that its server was started with into the address. */
const hostIn = ({ headers }, { host }) => headers.get("host") ?? host;

const hostOf = (origin) => (URL.canParse(origin) ? new URL(origin).host : undefined);

/** The address of the service, to which the key may be sent. */
function baseOf(given = variable("HOPLINE_BASE_URL")) {
  const refusal = (rule) => new TypeError(`relay: \`baseUrl\` ${rule}`);
  let url;
  try {
    url = new URL(given);
  } catch {
    throw refusal("must be the address of the service, such as \"https://host/v1\"");
  }
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback)) throw refusal("must begin with https://, since the key goes to it");
  if (url.username || url.password || url.search || url.hash) throw refusal("must hold no login, query or fragment");
  return url.href.replace(/\/+$/, "");
}

/** The operations that are let through. */
function routesOf(allow) {
  if (!Array.isArray(allow) || allow.length === 0) throw new TypeError("relay: `allow` must name the operations that are let through, such as [\"getBalance\"]");
  const routes = allow.map((name) => {
    if (!Object.hasOwn(OPERATIONS, name)) throw new TypeError(`relay: \`allow\` names \`${name}\`, which is no operation`);
    const { api, method, path } = OPERATIONS[name];
    // A parameter is one segment of plain letters. Nothing that is escaped is let through, so no path can mean two things.
    const pattern = path.replaceAll(/\{(\w+)\}/g, (_, parameter) => `(?!\\.+(?:/|$))(?<${parameter}>[\\w.~-]+)`);
    return { name, api, method, pattern: new RegExp(`^${pattern}$`) };
  });
  if (new Set(routes.map(({ api }) => api)).size > 1) throw new TypeError("relay: `allow` must name operations of one API; make a relay for each");
  return routes;
}

function routeOf(routes, method, path) {
  for (const route of routes) {
    const found = route.method === method && route.pattern.exec(path);
    if (found) return [route, { ...found.groups }];
  }
  return [];
}

/** Makes the headers with the key or the token, for a request of the page. */
function loginOf(api, { apiKey = variable("HOPLINE_API_KEY"), token }) {
  const [name, given, header, start] = api === "agent" ? ["apiKey", apiKey, "x-api-key", ""] : ["token", token, "authorization", "Bearer "];
  if (!given) throw new TypeError(`relay: \`${name}\` is required for operations of the ${api} API`);
  return async (request) => {
    const found = typeof given === "function" ? await given(request) : given;
    const text = typeof found?.reveal === "function" ? found.reveal() : found;
    if (typeof text !== "string" || !text) throw new TypeError(`relay: \`${name}\` must be a text or a Secret`);
    return new Headers({ [header]: start + text });
  };
}

const variable = (name) => globalThis.process?.env?.[name]?.trim();

/** The body of a request. Nothing where it is too long. */
async function bodyOf(request, most) {
  if (Number(request.headers.get("content-length")) > most) return undefined;
  const [chunks, reader] = [[], request.body?.getReader()];
  let length = 0;
  for (let read = await reader?.read(); read && !read.done; read = await reader.read()) {
    length += read.value.length;
    if (length > most) return void quietly(() => reader.cancel());
    chunks.push(read.value);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

/** The content of a body. Nothing where it is no JSON, or where two readers could read two values: a member that stands twice. */
function contentOf(body) {
  if (body.length === 0) return { content: undefined };
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    let [members, content] = [0, JSON.parse(text)];
    const count = (value) => {
      if (typeof value !== "object" || value === null) return;
      members += Array.isArray(value) ? 0 : Object.keys(value).length;
      Object.values(value).forEach(count);
    };
    count(content);
    const written = [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon).length;
    return written === members ? { content } : undefined;
  } catch {
    return undefined;
  }
}

/** Calls something whose failure changes nothing here. */
function quietly(call) {
  try {
    Promise.resolve(call()).catch((error) => console.error("hopline:", error));
  } catch (error) {
    console.error("hopline:", error);
  }
}

export function toNode(handle) {
  return async (request, response) => {
    try {
      await write(await handle(requestOf(request)), response);
    } catch (error) {
      if (!(error instanceof TypeError)) return void response.destroy(error);
      console.error("hopline:", error.message);
      await write(refuse(422, "this server can't read the request, which it did not pass on"), response);
    }
  };
}

function requestOf(request) {
  const { method, headers: given } = request;
  const hasBody = Number(given["content-length"]) > 0 || given["transfer-encoding"] !== undefined;
  if (hasBody && request.readableEnded) throw new TypeError("toNode: something has read the body before the relay; put the relay before it, such as before express.json()");
  const headers = Object.entries(given).filter(([name, value]) => value !== undefined && !name.startsWith(":")).map(([name, value]) => [name, String(value)]);
  const scheme = request.socket.encrypted ? "https" : "http";
  // Express takes the mount away from `url`.
  const url = `${scheme}://${given.host ?? given[":authority"]}${request.originalUrl ?? request.url}`;
  const chunks = request[Symbol.asyncIterator]();
  const body = new ReadableStream({
    async pull(controller) {
      const { value, done } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(new Uint8Array(value));
    },
  });
  return new Request(url, { method, headers, ...(hasBody && !["GET", "HEAD"].includes(method) ? { body, duplex: "half" } : {}) });
}

/** Writes an answer. One that breaks off breaks off here, too. */
async function write(answer, response) {
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) response.setHeader(name, value);
  // The rest of a refused request is not read.
  if (answer.status === 413) response.setHeader("connection", "close");
  try {
    const reader = answer.body?.getReader();
    for (let read = await reader?.read(); read && !read.done; read = await reader.read()) {
      if (response.destroyed) return void reader.cancel();
      if (!response.write(read.value)) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
    }
    response.end();
  } catch (error) {
    response.destroy(error);
  }
}
