// `cargo xtask relay-check`: the package's own relay keeps each rule, and a relay that breaks one is told which.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { relay, toNode } from "hopline/backend";

import { KEY, check, service } from "./lib/relay-check.mjs";

async function listening(t, handle) {
  const server = createServer(handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${server.address().port}/api/v1`;
}

async function upstream(t) {
  const watched = await service();
  t.after(() => watched.end());
  return watched;
}

test("the package's own relay keeps each rule, with a login and without", async (t) => {
  const watched = await upstream(t);
  const options = { baseUrl: watched.url, apiKey: KEY, mount: "/api/v1", allow: ["createSession", "getSession", "getBalance"] };
  for (const [login, authorize] of [[{}, () => ({ account: "ann" })], [{ "x-user": "ann" }, (request) => request.headers.has("x-user") && { account: "ann" }]]) {
    const url = await listening(t, toNode(relay({ ...options, authorize })));
    const results = await check(url, watched, { login, patience: 1000 });
    assert.deepEqual(results.map(({ number, faults }) => [number, faults]), [1, 2, 3, 4, 5, 6, 7].map((number) => [number, []]));
  }
});

/** A relay as somebody may write it, which keeps the rules but for those that are switched off. */
function homemade(base, broken) {
  const is = (fault) => broken === fault;
  const envelope = (code) => JSON.stringify({ success: false, data: null, error: { code, message: "no" } });
  return async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const path = request.url.slice("/api/v1".length);
    const end = (status, text, headers = {}) => response.writeHead(status, headers).end(text);
    const { origin, "x-user": user } = request.headers;
    if (!is("foreign sites") && origin !== `http://${request.headers.host}`) return end(403, envelope("AUTH_INSUFFICIENT_PERMISSION"));
    if (!is("no login") && user !== "ann") return end(401, envelope("AUTH_INVALID_KEY"));
    const known = `${request.method} ${path}` === "POST /sessions" || (request.method === "GET" && (is("paths") ? path.startsWith("/sessions/") : /^\/sessions\/[\w-]+$/.test(path)));
    if (!known && !is("everything")) return end(is("wrong status") ? 500 : 404, envelope(is("wrong code") ? "SESSION_NOT_FOUND" : "ROUTE_NOT_FOUND"), { "content-type": "application/json" });
    const headers = new Headers({ "x-api-key": KEY });
    const passed = is("headers") ? ["content-type", "idempotency-key", "cookie", "x-forwarded-for", "x-relay-check"] : ["content-type", ...(is("key") ? [] : ["idempotency-key"])];
    for (const name of passed) if (request.headers[name]) headers.set(name, request.headers[name]);
    if (is("login passed on")) headers.set("x-user", user);
    const send = () => fetch(base + path, { method: request.method, headers, body: body.length > 0 ? body : undefined, redirect: is("redirects") ? "follow" : "manual", signal: AbortSignal.timeout(is("patience") ? 2000 : 30_000) });
    try {
      let answer = await send();
      if (is("repeats") && answer.status >= 500) answer = await send();
      const text = await answer.text();
      const down = is("date") ? ["content-type", "retry-after"] : is("retry-after") ? ["content-type", "date"] : ["content-type", "date", "retry-after"];
      const given = Object.fromEntries(down.flatMap((name) => (answer.headers.has(name) ? [[name, answer.headers.get(name)]] : [])));
      if (is("cookies") && answer.headers.has("set-cookie")) given["set-cookie"] = answer.headers.get("set-cookie");
      if (is("key shown")) given["x-sent-with"] = KEY;
      end(is("status") && answer.status === 202 ? 200 : answer.status, is("body") ? JSON.stringify(JSON.parse(text || "null")) : text, given);
    } catch (error) {
      if (is("repeats a lost one")) await send().catch(() => {});
      end(is("lost as refused") ? 422 : 502, is("envelope") ? envelope("BACKEND_TIMEOUT") : "no answer", { "content-type": "text/plain" });
    }
  };
}

/** By what is wrong with a relay: the rule that it breaks, and what is said. */
const BROKEN = {
  key: [1, /the service got none/], repeats: [2, /after HTTP 50\d the service got 2 requests/], "repeats a lost one": [2, /after a lost answer the service got 2 requests/], redirects: [2, /followed a redirect/],
  status: [3, /HTTP 202 came back as 200/], body: [3, /came back as another text/], date: [3, /the `Date`/], "retry-after": [3, /the `Retry-After`/], envelope: [4, /in an envelope/], patience: [4, /after 4 seconds/],
  "lost as refused": [4, /lost answer came back as HTTP 422/], everything: [5, /another path .* reached the service/], "wrong status": [5, /refused by HTTP 500/], "wrong code": [5, /SESSION_NOT_FOUND/],
  paths: [6, /reached the service as/], headers: [6, /`cookie` reached/], "login passed on": [6, /`x-user`, a login/], cookies: [6, /cookie of the service/],
  "foreign sites": [7, /a page of another site reached/], "no login": [7, /without the login reached/], "key shown": [7, /the key came back/],
};

test("a relay that breaks a rule is told which, and one that keeps them all is not", async (t) => {
  const judged = async (broken) => {
    const watched = await upstream(t);
    const url = await listening(t, homemade(watched.url, broken));
    return (await check(url, watched, { login: { "x-user": "ann" }, patience: broken === "patience" ? 4000 : 400 })).filter(({ faults }) => faults.length > 0);
  };
  assert.deepEqual(await judged(undefined), []);
  await Promise.all(Object.entries(BROKEN).map(async ([broken, [number, said]]) => {
    const found = await judged(broken);
    const rule = found.find((one) => one.number === number);
    assert.match(rule?.faults.join("\n") ?? JSON.stringify(found), said, broken);
    // A relay that passes everything on breaks more than one.
    if (broken !== "everything") assert.deepEqual(found.map((one) => one.number), [number], `${broken}: ${JSON.stringify(found)}`);
  }));
});

test("a relay that lets nothing through is not called a good one", async (t) => {
  const watched = await upstream(t);
  const url = await listening(t, (_, response) => response.writeHead(403).end());
  const [{ number, faults }] = await check(url, watched);
  assert.equal(number, 0);
  assert.match(faults[0], /was answered by 403, and nothing came to http:.*--header$/);
});
