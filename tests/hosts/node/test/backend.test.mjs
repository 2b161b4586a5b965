// `hopline/backend`: the relay between a page and the service, asked what no page would ask, and passed by real clients.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { test } from "node:test";

import { AgentClient, FolderStore, ResellerClient, Secret, operations } from "hopline";
import { refuse, relay, toNode } from "hopline/backend";

import { noting } from "./lib/noting.mjs";
import { peers } from "./lib/peers.mjs";
import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

const KEY = "canary-key-of-the-backend";
const HOST = "https://app.example";
const authorize = () => ({ account: "ann" });

/** A relay before an API that notes what it is asked, and answers as it is told to. */
async function before(t, { answer = (_, response) => response.end("{}"), ...options } = {}) {
  const { asked, baseUrl } = await noting(t, answer);
  const allow = ["listProducts", "getBalance", "createSession", "getSession", "rotateSession", "terminateSession"];
  const handle = relay({ baseUrl: `${baseUrl}/`, apiKey: KEY, mount: "/api/v1", allow, authorize, ...options });
  /** A request as the page of the same address sends it. */
  const send = (method, path, { headers = {}, body } = {}) => {
    const own = { ...(method === "GET" ? {} : { origin: HOST }), "sec-fetch-site": "same-origin" };
    const all = Object.entries({ ...own, ...headers }).filter(([, value]) => value !== undefined);
    return handle(new Request(HOST + path, { method, headers: all, ...(body === undefined ? {} : { body, duplex: "half" }) }));
  };
  return { asked, handle, send };
}

async function refused(answer, status, code) {
  const text = await answer.text();
  assert.equal(answer.status, status, text);
  const { success, data, error, meta } = JSON.parse(text);
  assert.deepEqual([success, data, error.code], [false, null, code]);
  assert.ok(error.message && meta.request_id && Date.parse(meta.timestamp));
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.ok(!text.includes(KEY));
}

/** Collects what is printed as an error. */
function printed(t) {
  const lines = [];
  t.mock.method(console, "error", (...words) => lines.push(words.map(String).join(" ")));
  return lines;
}

test("the key, the idempotency key, the body and the answer are passed on, and nothing else is", async (t) => {
  const answer = (_, response) => {
    response.writeHead(202, { "content-type": "application/json", "retry-after": "7", date: "Sat, 21 Nov 2026 12:00:00 GMT", "set-cookie": "a=b", "x-internal": "1" });
    response.end('{"success":true}');
  };
  const told = [];
  const { asked, send } = await before(t, { answer, onAnswer: (one) => told.push(one) });
  const foreign = { cookie: "a=b", "x-api-key": "somebody's", authorization: "Bearer x", "x-forwarded-for": "1.2.3.4", "x-http-method-override": "DELETE" };
  const sent = { headers: { "content-type": "application/json", "idempotency-key": "key-1", ...foreign }, body: '{"quantity":0.50}' };
  const got = await send("POST", "/api/v1/sessions", sent);
  assert.deepEqual([got.status, await got.text()], [202, '{"success":true}']);
  assert.deepEqual([got.headers.get("retry-after"), got.headers.get("date")], ["7", "Sat, 21 Nov 2026 12:00:00 GMT"]);
  assert.ok(!got.headers.has("set-cookie") && !got.headers.has("x-internal"));
  const [{ method, url, headers, body }] = asked;
  assert.deepEqual([method, url, body, headers["idempotency-key"], headers["x-api-key"]], ["POST", "/v1/sessions", '{"quantity":0.50}', "key-1", KEY]);
  for (const name of Object.keys(foreign).filter((name) => name !== "x-api-key")) assert.ok(!(name in headers), name);
  await send("GET", "/api/v1/sessions/ses_1?include_credentials=true");
  assert.equal(asked[1].url, "/v1/sessions/ses_1?include_credentials=true");
  assert.deepEqual(told.map(({ ms, ...one }) => (assert.ok(ms >= 0), one)), [
    { operation: "createSession", account: "ann", status: 202 },
    { operation: "getSession", account: "ann", status: 202 },
  ]);
});

test("no other operation is passed on, by whatever path it is named", async (t) => {
  const { asked, send, handle } = await before(t);
  const others = [
    ["POST", "/billing/recharge"], ["PUT", "/account/budget"], ["GET", "/account"], ["DELETE", "/sessions"], ["PATCH", "/sessions/a"],
    ["GET", "/sessions/.."], ["GET", "/sessions/%2e%2e"], ["GET", "/sessions/../account"], ["GET", "/sessions/%2e%2e/account"], ["GET", "/sessions/a%2f..%2f..%2faccount"],
    ["GET", "/sessions/a%5c..%5caccount"], ["GET", "/sessions/a\\..\\..\\account"], ["GET", "//sessions/a"], ["GET", "/sessions/a/"], ["GET", "/sessions/"],
    ["GET", "/sessions/a/b"], ["GET", "/sessions/a%00"], ["GET", "/sessions/a%0d%0ax"], ["GET", "/sessions/a;x=1"], ["GET", "/products/"], ["GET", ""], ["GET", "/Products"],
    ["POST", "/products"], ["HEAD", "/products"], ["OPTIONS", "/products"],
  ];
  for (const [method, path] of others) {
    const answer = await send(method, `/api/v1${path}`, { headers: { origin: HOST } });
    if (method === "HEAD") assert.equal(answer.status, 404);
    else await refused(answer, 404, "ROUTE_NOT_FOUND");
  }
  for (const path of ["/products", "/api/v2/products", "/api/v1products", "/API/v1/products", "/x/api/v1/products"]) await refused(await send("GET", path), 404, "ROUTE_NOT_FOUND");
  await refused(await handle(new Request("https://app.example:1//other.example/api/v1/products")), 404, "ROUTE_NOT_FOUND");
  assert.deepEqual(asked, []);
});

test("no other site can use it, by a form or by a script; an app with a token can", async (t) => {
  const { asked, send } = await before(t);
  const without = { origin: undefined, "sec-fetch-site": undefined };
  const refusals = [
    ["POST", { origin: "https://evil.example" }],
    ["POST", { origin: "null" }],
    ["POST", { "sec-fetch-site": "cross-site" }],
    ["POST", { "sec-fetch-site": "same-site" }],
    ["GET", { "sec-fetch-site": "same-site" }],
    ["GET", { "sec-fetch-site": "cross-site", authorization: "Bearer x" }],
    ["GET", { origin: "https://evil.example" }],
    ["POST", without],
    ["POST", { ...without, authorization: "Basic YTpi" }],
    ["POST", { origin: "https://app.example.evil.example" }],
  ];
  for (const [method, headers] of refusals) {
    const path = method === "GET" ? "/api/v1/products" : "/api/v1/sessions";
    await refused(await send(method, path, { headers }), 403, "AUTH_INSUFFICIENT_PERMISSION");
  }
  assert.deepEqual(asked, []);
  assert.equal((await send("GET", "/api/v1/products", { headers: without })).status, 200);
  assert.equal((await send("POST", "/api/v1/sessions", { headers: { ...without, authorization: "Bearer of-the-app" }, body: "{}" })).status, 200);
  assert.ok(!("authorization" in asked[1].headers));
});

test("pages of other addresses that are named may use it, as browsers demand, and then only those", async (t) => {
  const shop = "https://shop.example";
  const { asked, send } = await before(t, { origins: [shop] });
  const headers = { origin: shop, "sec-fetch-site": "cross-site" };
  const preflight = await send("OPTIONS", "/api/v1/sessions", { headers: { ...headers, "access-control-request-method": "POST" } });
  const shown = (answer, name) => answer.headers.get(`access-control-${name}`);
  assert.deepEqual([preflight.status, shown(preflight, "allow-origin"), shown(preflight, "allow-credentials")], [204, shop, "true"]);
  assert.match(shown(preflight, "allow-headers"), /idempotency-key/);
  const answer = await send("POST", "/api/v1/sessions", { headers, body: "{}" });
  assert.deepEqual([answer.status, shown(answer, "allow-origin"), shown(answer, "expose-headers"), answer.headers.get("vary")], [200, shop, "content-type, date, retry-after", "origin"]);
  await refused(await send("POST", "/api/v1/sessions", { headers: { origin: "https://evil.example" }, body: "{}" }), 403, "AUTH_INSUFFICIENT_PERMISSION");
  await refused(await send("POST", "/api/v1/sessions", { body: "{}" }), 403, "AUTH_INSUFFICIENT_PERMISSION");
  assert.equal(asked.length, 1);
});

test("whoever may not spend is refused before anything is passed on, in the words of the app", async (t) => {
  const calls = [];
  const check = ({ operation, account, body }) => {
    calls.push([operation, account, body]);
    if (body?.quantity > 2) return refuse(422, "two GB at most");
  };
  const users = { tokenA: { account: "ann" }, tokenB: false, tokenC: refuse(401, "log in first") };
  const { asked, send } = await before(t, { check, authorize: (request) => users[request.headers.get("x-user")] });
  const buy = (user, body) => send("POST", "/api/v1/sessions", { headers: { "x-user": user, "content-type": "application/json" }, body });
  await refused(await buy("tokenB", "{}"), 403, "AUTH_INSUFFICIENT_PERMISSION");
  await refused(await buy("tokenC", "{}"), 401, "AUTH_INVALID_KEY");
  await refused(await buy("tokenA", '{"quantity":3}'), 422, "REFUSED_BY_BACKEND");
  // Two readers may read two values, and another text may mean the same to one of them.
  for (const body of ['{"quantity":1,"quantity":100}', '{"quantity":100,"\\u0071uantity":1}', '{"a":[{"b":1,"b":2}]}', '{"quantity":1', "quantity=1", '\ufeff{"quantity":1}'])
    await refused(await buy("tokenA", body), 422, "REFUSED_BY_BACKEND");
  assert.deepEqual([asked.length, calls.length], [0, 1]);
  const odd = '{"quantity" : 2, "a\\"b:":"c\\":", "__proto__":{"x":["d\\\\", {}]}}';
  assert.equal((await buy("tokenA", odd)).status, 200);
  assert.deepEqual([asked[0].body, calls[1].slice(0, 2)], [odd, ["createSession", "ann"]]);
  assert.equal((await send("GET", "/api/v1/sessions/s-1", { headers: { "x-user": "tokenA" } })).status, 200);
  assert.deepEqual(calls[2], ["getSession", "ann", undefined]);
});

test("a function of the app that fails refuses the request, prints why, and nothing is passed on", async (t) => {
  const fail = () => {
    throw new Error("the database is away");
  };
  const lines = printed(t);
  const wrong = [{ authorize: fail }, { authorize: async () => fail() }, { authorize: () => "ann" }, { authorize: () => ({ account: "" }) }, { check: fail }, { apiKey: fail }, { apiKey: () => undefined }];
  for (const options of wrong) {
    const { asked, send } = await before(t, options);
    await refused(await send("POST", "/api/v1/sessions", { body: "{}" }), 403, "AUTH_INSUFFICIENT_PERMISSION");
    assert.deepEqual(asked, []);
  }
  assert.equal(lines.length, wrong.length);
  assert.ok(lines.every((line) => line.startsWith("hopline: the relay refused a request")) && lines[0].includes("the database is away"));
  const { asked, send } = await before(t, { onAnswer: fail });
  assert.equal((await send("POST", "/api/v1/sessions", { body: "{}" })).status, 200);
  assert.equal(asked.length, 1);
});

test("a body has a limit, announced or not", async (t) => {
  const { asked, send } = await before(t, { maxBody: 100 });
  const stream = (length) => new Blob(["x".repeat(length)]).stream();
  await refused(await send("POST", "/api/v1/sessions", { body: "x".repeat(101), headers: { "content-length": "101" } }), 413, "REFUSED_BY_BACKEND");
  await refused(await send("POST", "/api/v1/sessions", { body: stream(101) }), 413, "REFUSED_BY_BACKEND");
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error("gone")) });
  await refused(await send("POST", "/api/v1/sessions", { body: broken }), 422, "REFUSED_BY_BACKEND");
  assert.deepEqual(asked, []);
  assert.equal((await send("POST", "/api/v1/sessions", { body: stream(100) })).status, 200);
  assert.equal(asked[0].body.length, 100);
});

test("an answer that is lost has no envelope, and is asked for once", async (t) => {
  const lost = await before(t, { answer: (request) => request.socket.destroy() });
  const answer = await lost.send("POST", "/api/v1/sessions", { body: "{}" });
  assert.deepEqual([answer.status, answer.headers.get("content-type"), await answer.text(), lost.asked.length], [502, "text/plain", "the API gave no answer", 1]);
  const late = await before(t, { answer: () => {}, timeoutMs: 50 });
  assert.deepEqual([(await late.send("POST", "/api/v1/sessions", { body: "{}" })).status, late.asked.length], [502, 1]);
  const cut = await before(t, {
    answer: (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"success":true,', () => response.destroy());
    },
  });
  await assert.rejects((await cut.send("GET", "/api/v1/products")).text());
  // A redirect is the client's to judge.
  const moved = await before(t, { answer: (_, response) => response.writeHead(307, { location: "/v1/other" }).end() });
  const redirect = await moved.send("POST", "/api/v1/sessions", { body: "{}" });
  assert.deepEqual([redirect.status, redirect.headers.has("location"), moved.asked.length], [307, false, 1]);
});

test("every tenant has a key, which may be a secret, and a reseller's token is asked for each time", async (t) => {
  const { asked, send } = await before(t, { apiKey: async (request) => new Secret(`key-of-${request.headers.get("x-tenant")}`) });
  for (const tenant of ["a", "b"]) await send("GET", "/api/v1/products", { headers: { "x-tenant": tenant } });
  assert.deepEqual(asked.map(({ headers }) => headers["x-api-key"]), ["key-of-a", "key-of-b"]);
  let count = 0;
  const reseller = await before(t, { allow: ["listSubUsers", "deleteSubUser"], token: () => `token-${++count}` });
  const { path } = operations.listSubUsers;
  for (let sent = 0; sent < 2; sent += 1) await reseller.send(operations.listSubUsers.method, `/api/v1${path}`);
  assert.deepEqual(reseller.asked.map(({ headers }) => [headers.authorization, headers["x-api-key"]]), [["Bearer token-1", undefined], ["Bearer token-2", undefined]]);
});

test("options that are wrong are refused with what is right, before anything is served", (t) => {
  const right = { baseUrl: "https://api.example/v1", apiKey: KEY, mount: "/api/v1", allow: ["getBalance"], authorize };
  relay(right);
  const wrong = [
    [{ authorize: undefined }, "`authorize` is required"],
    [{ mount: "api/v1" }, "`mount` must be"],
    [{ mount: "/api/" }, "`mount` must be"],
    [{ mount: undefined }, "`mount` must be"],
    [{ allow: [] }, "`allow` must name"],
    [{ allow: ["getBalance", "get_session"] }, "`get_session`, which is no operation"],
    [{ allow: ["toString"] }, "`toString`, which is no operation"],
    [{ allow: ["getBalance", "listSubUsers"] }, "of one API"],
    [{ baseUrl: "http://api.example/v1" }, "must begin with https://"],
    [{ baseUrl: "api.example" }, "must be the address"],
    [{ baseUrl: "https://me:pw@api.example/v1" }, "no login"],
    [{ baseUrl: "https://api.example/v1?x=1" }, "no login, query or fragment"],
    [{ apiKey: "" }, "`apiKey` is required"],
    [{ allow: ["listSubUsers"] }, "`token` is required"],
  ];
  for (const [options, words] of wrong) assert.throws(() => relay({ ...right, ...options }), ({ message }) => message.startsWith("relay: ") && message.includes(words) && !message.includes(KEY));
  // A code that ends a purchase would free what may have been bought by an earlier send.
  for (const status of [400, 402, 409, 500, 200, "toString"]) assert.throws(() => refuse(status, "no"), /`status` must be one of 401, 403/);
});

/** The service behind a relay in `node:http`, and what a page's client of it is made of. */
async function served(t, service, options = {}) {
  const own = { baseUrl: service.agent_url, apiKey: service.api_key, allow: ["listProducts", "createSession", "getSession", "terminateSession"] };
  const handle = toNode(relay({ ...own, mount: "/api/v1", authorize, ...options }));
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  const origin = `http://127.0.0.1:${server.address().port}`;
  /** Node's fetch names no page that it is of. */
  const asPage = (url, init) => {
    const headers = new Headers(init.headers);
    headers.set("origin", origin);
    return fetch(url, { ...init, headers });
  };
  return { baseUrl: `${origin}/api/v1`, fetch: asPage };
}

test("a client without a key buys through it, once, though an answer is lost", async (t) => {
  const service = await sandbox(t);
  const page = await served(t, service);
  await service.fault({ kind: "drop_after" }, "create_session");
  const agent = new AgentClient({ ...page, store: new FolderStore(folder(t)) });
  t.after(() => agent.close());
  const session = await agent.openSession(WANTED, { intent: "prices" });
  await session.terminate();
  const { sessions } = await service.state();
  assert.equal(sessions.length, 1);
});

test("a refusal of the relay is refused with effect none, keeps its key, and the purchase is made once it is allowed", async (t) => {
  const service = await sandbox(t);
  let may = false;
  const page = await served(t, service, { authorize: () => may && { account: "ann" }, check: () => undefined });
  const agent = new AgentClient({ ...page, store: new FolderStore(folder(t)) });
  t.after(() => agent.close());
  await assert.rejects(agent.openSession(WANTED, { intent: "prices" }), (error) => (assert.deepEqual([error.kind, error.effect], ["refused", "none"]), error.message.includes("this is not allowed to this user")));
  may = true;
  const session = await agent.openSession(WANTED, { intent: "prices" });
  await session.terminate();
  assert.equal((await service.state()).sessions.length, 1);
});

test("a reseller's page works through the server's login, and is refused in its own envelope", async (t) => {
  const service = await sandbox(t);
  const reseller = service.reseller();
  await reseller.getCurrentBalance();
  let may = true;
  const page = await served(t, service, { baseUrl: service.backend_url, apiKey: undefined, token: () => reseller.token, allow: ["createUser", "listSubUsers"], authorize: () => may && { account: "ann" } });
  const client = new ResellerClient({ ...page });
  t.after(() => client.close());
  const { id } = await client.createUser({ username: "bea", password: "canary-bea", email: "bea@example.com", balance: 0 });
  assert.ok(id);
  may = false;
  await assert.rejects(client.createUser({ username: "cid", password: "canary-cid", email: "cid@example.com", balance: 0 }), ({ kind, effect }) => {
    assert.deepEqual([kind, effect], ["refused", "none"]);
    return true;
  });
});

test("a write is passed on over a connection of its own, so that one without a key is not lost on a connection that was closing", { timeout: 60_000 }, async (t) => {
  const service = await sandbox(t);
  const { odd_url, recorded } = await peers(t, service);
  const reseller = service.reseller();
  await reseller.getCurrentBalance();
  let users = 0;
  for (const behaviour of ["stale", "stale-close", "unasked-408", "close", "second-answer"]) {
    const page = await served(t, service, { baseUrl: `${odd_url}/${behaviour}/api`, apiKey: undefined, token: () => reseller.token, allow: ["createUser", "listSubUsers"], authorize });
    const client = new ResellerClient({ ...page });
    t.after(() => client.close());
    for (const n of [1, 2, 3]) {
      // A connection that was used is there when the write begins.
      await client.walkSubUsers({ pageSize: 10 })[Symbol.asyncIterator]().next();
      const name = `bea-${behaviour}-${n}`;
      const { id } = await client.createUser({ username: name, password: "canary-bea", email: `${name}@example.com` }).catch((error) => assert.fail(`${behaviour} ${n}: ${error.message}`));
      assert.ok(id !== undefined);
      users += 1;
    }
  }
  const writes = (await recorded()).relayed.filter(({ method }) => method === "POST");
  assert.deepEqual([writes.length, new Set(writes.map(({ behaviour, connection }) => `${behaviour} ${connection}`)).size], [users, users], "each has its own");
});

test("the connection of a write ends with its answer", { timeout: 30_000 }, async (t) => {
  const open = new Set();
  const { send } = await before(t, {
    answer: ({ socket }, response) => {
      // Neither end closes it by itself.
      socket.server.keepAliveTimeout = 600_000;
      open.add(socket.once("close", () => open.delete(socket)));
      response.end("{}");
    },
  });
  for (let n = 0; n < 20; n += 1) assert.equal(await (await send("POST", "/api/v1/sessions", { body: "{}" })).text(), "{}");
  while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

test("in node:http an answer that breaks off breaks off, and a body that was read before is named", async (t) => {
  const lines = printed(t);
  const broken = { status: 200, headers: new Headers(), body: new ReadableStream({ pull: (controller) => controller.error(new Error("cut")) }) };
  const read = async (request, response) => {
    for await (const _ of request);
    return toNode(() => assert.fail("nothing is passed on"))(request, response);
  };
  const server = createServer((request, response) => (request.url === "/read" ? read(request, response) : toNode(async () => broken)(request, response))).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  const { port } = server.address();
  await assert.rejects(fetch(`http://127.0.0.1:${port}/cut`).then((answer) => answer.text()));
  await refused(await fetch(`http://127.0.0.1:${port}/read`, { method: "POST", body: "{}" }), 422, "REFUSED_BY_BACKEND");
  assert.match(lines[0], /put the relay before it, such as before express\.json\(\)/);
  // An address that is none.
  const status = await new Promise((resolve, reject) => {
    httpRequest({ host: "127.0.0.1", port, path: "http://[", headers: { host: "a b" } }, (answer) => resolve(answer.resume().statusCode)).once("error", reject).end();
  });
  assert.ok([400, 422].includes(status));
});
