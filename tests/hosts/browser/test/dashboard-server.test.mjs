// The dashboard's own backend, asked what no browser would: it has a key that spends money.
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";

import { noting } from "../../node/test/lib/noting.mjs";
import { sandbox } from "../../node/test/lib/sandbox.mjs";
import { serve } from "./dashboard-stage.mjs";

const KEY = "canary-key-of-the-backend";

/** The dashboard before an API that notes what it is asked, and answers as it is told to. */
async function before(t, answer = (_, response) => response.end("{}")) {
  const { asked, baseUrl } = await noting(t, answer);
  const served = await serve(t, { HOPLINE_BASE_URL: baseUrl, HOPLINE_API_KEY: KEY });
  const { host, origin, port } = new URL(served.url);
  /** As it goes over the wire: nothing tidies the path up. */
  const send = (method, path, { headers = {}, body, onChunk } = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port, method, path, headers: { host, ...(method === "GET" ? {} : { origin }), ...headers } },
        async (response) => {
          let text = "";
          try {
            for await (const chunk of response) {
              text += chunk;
              onChunk?.();
            }
          } catch {
            text += "[broken off]";
          }
          resolve({ status: response.statusCode, headers: response.headers, text });
        },
      );
      sent.once("error", reject);
      sent.end(body);
    });
  return { asked, served, send, origin };
}

function refused({ status, text }, expected, code) {
  assert.equal(status, expected, text);
  const { success, data, error, meta } = JSON.parse(text);
  assert.deepEqual([success, data, error.code], [false, null, code]);
  assert.ok(error.message && meta.request_id && Date.parse(meta.timestamp));
}

test("what the page needs is passed on with the key, and nothing else of the request is", async (t) => {
  const { asked, send, served } = await before(t, (_, response) => {
    response.writeHead(202, {
      "content-type": "application/json",
      "retry-after": "7",
      date: "Sat, 21 Nov 2026 12:00:00 GMT",
      "set-cookie": "a=b",
      "x-internal": "1",
    });
    response.end('{"success":true}');
  });
  const headers = {
    "content-type": "application/json",
    "idempotency-key": "key-1",
    cookie: "a=b",
    "x-api-key": "somebody's",
    authorization: "Bearer x",
    "x-forwarded-for": "1.2.3.4",
    te: "trailers",
  };
  const answer = await send("POST", "/api/sessions", { headers, body: '{"product_no":"x"}' });
  assert.deepEqual([answer.status, answer.text], [202, '{"success":true}']);
  assert.deepEqual([answer.headers["retry-after"], answer.headers.date], ["7", "Sat, 21 Nov 2026 12:00:00 GMT"]);
  assert.ok(!("set-cookie" in answer.headers) && !("x-internal" in answer.headers));
  const [{ method, url, headers: passed, body }] = asked;
  assert.deepEqual(
    [method, url, body, passed["idempotency-key"], passed["x-api-key"]],
    ["POST", "/v1/sessions", '{"product_no":"x"}', "key-1", KEY],
  );
  for (const name of ["cookie", "authorization", "x-forwarded-for", "te"]) assert.ok(!(name in passed), name);
  await send("GET", "/api/sessions/ses_1?include_credentials=true");
  assert.equal(asked[1].url, "/v1/sessions/ses_1?include_credentials=true");
  assert.ok(!JSON.stringify(answer).includes(KEY) && !served.printed.includes(KEY));
});

test("no other operation is passed on, by whatever path it is named", async (t) => {
  const { asked, send } = await before(t);
  const others = [
    ["POST", "/api/billing/recharge"],
    ["PUT", "/api/account/budget"],
    ["GET", "/api/account"],
    ["DELETE", "/api/sessions"],
    ["PATCH", "/api/sessions/a"],
    ["GET", "/api/sessions/.."],
    ["GET", "/api/sessions/../account"],
    ["GET", "/api/sessions/%2e%2e/account"],
    ["GET", "/api/sessions/a%2f..%2f..%2faccount"],
    ["GET", "/api/sessions/a%5c..%5caccount"],
    ["GET", "/api//sessions/a"],
    ["GET", "/api/sessions/a/"],
    ["GET", "/api/sessions/"],
    ["GET", "/api/sessions/a/b"],
    ["GET", "/api/sessions/a%00"],
    ["GET", "/api/sessions/a;x=1"],
    ["GET", "/api/products/"],
    ["POST", "/api/products"],
  ];
  for (const [method, path] of others) refused(await send(method, path), 404, "ROUTE_NOT_FOUND");
  const files = ["/api", "/API/products", "/server.mjs", "/../server.mjs", "/%2e%2e/server.mjs", "/hopline/package.json"];
  // An address that names another host is no path of ours.
  for (const path of [...files, "http://example.com/api/products", "//example.com/api/products"]) assert.equal((await send("GET", path)).status, 404);
  assert.equal((await send("POST", "/")).status, 404);
  assert.deepEqual(asked, []);
});

test("no other site can use it, by a form, a script, or a name that it points here", async (t) => {
  const { asked, send, origin } = await before(t);
  const refusals = [
    ["POST", { origin: "https://evil.example" }],
    ["POST", { origin: "null" }],
    ["POST", { origin, "sec-fetch-site": "cross-site" }],
    ["GET", { "sec-fetch-site": "same-site" }],
    ["GET", { origin: "https://evil.example" }],
    ["POST", { origin: [] }],
  ];
  for (const [method, headers] of refusals)
    refused(await send(method, method === "GET" ? "/api/products" : "/api/sessions", { headers }), 403, "AUTH_INSUFFICIENT_PERMISSION");
  for (const path of ["/api/products", "/account", "/"]) assert.equal((await send("GET", path, { headers: { host: "evil.example" } })).status, 403);
  assert.equal((await send("POST", "/api/sessions", { headers: { host: "evil.example", origin: "http://evil.example" } })).status, 403);
  assert.deepEqual(asked, []);
  assert.equal((await send("GET", "/api/products", { headers: { "sec-fetch-site": "same-origin" } })).status, 200);
});

test("a body has a limit, announced or not", async (t) => {
  const { asked, send } = await before(t);
  const long = "x".repeat(20_000);
  refused(await send("POST", "/api/sessions", { body: long, headers: { "content-length": "20000" } }), 413, "REFUSED_BY_BACKEND");
  refused(await send("POST", "/api/sessions", { body: long, headers: { "transfer-encoding": "chunked" } }), 413, "REFUSED_BY_BACKEND");
  assert.deepEqual(asked, []);
});

test("an answer that is lost is never given an envelope, which would say that it is settled", async (t) => {
  const lost = await before(t, (request) => request.socket.destroy());
  const { status, text, headers } = await lost.send("POST", "/api/sessions", { body: "{}" });
  assert.deepEqual([status, headers["content-type"]], [502, "text/plain"]);
  assert.throws(() => JSON.parse(text));
  let cut;
  const half = await before(t, (_, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
    response.write('{"success":true,');
    cut = () => response.destroy();
  });
  assert.match((await half.send("GET", "/api/products", { onChunk: () => cut() })).text, /\[broken off\]$/);
});

test("the page and the package are served under a strict policy, without the key", async (t) => {
  const { send, served } = await before(t);
  for (const [path, type] of [
    ["/", "text/html"],
    ["/app.js", "text/javascript"],
    ["/style.css", "text/css"],
    ["/hopline/web.mjs", "text/javascript"],
    ["/hopline/core.wasm", "application/wasm"],
  ]) {
    const { status, headers, text } = await send("GET", path);
    assert.equal(status, 200, path);
    assert.ok(headers["content-type"].startsWith(type), path);
    assert.match(
      headers["content-security-policy"],
      /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src 'self';/,
    );
    assert.doesNotMatch(headers["content-security-policy"], /'unsafe-inline'|'unsafe-eval'|\*/);
    assert.ok(!text.includes(KEY), path);
  }
  const { text } = await send("GET", "/account");
  assert.match(JSON.parse(text).account, /^[0-9a-f]{16}$/);
  assert.match(served.printed, /^http:\/\/127\.0\.0\.1:\d+\/\n$/);
});

test("a file is sent compressed if the browser accepts that, and not again if the browser has it", async (t) => {
  const { send } = await before(t);
  const plain = await send("GET", "/hopline/core.wasm");
  assert.equal(plain.headers["content-encoding"], undefined);
  const zipped = await send("GET", "/hopline/core.wasm", { headers: { "accept-encoding": "gzip, br" } });
  assert.equal(zipped.headers["content-encoding"], "gzip");
  assert.ok(Number(zipped.headers["content-length"]) < Number(plain.headers["content-length"]) / 2);
  const { status, text, headers } = await send("GET", "/hopline/core.wasm", { headers: { "if-none-match": plain.headers.etag } });
  assert.deepEqual([status, text, headers["cache-control"]], [304, "", "no-cache"]);
  const other = await send("GET", "/app.js", { headers: { "if-none-match": plain.headers.etag } });
  assert.equal(other.status, 200);
});

test("a server that can't work says why, and ends", async (t) => {
  const attempt = (environment) =>
    assert.rejects(serve(t, { HOPLINE_BASE_URL: "", HOPLINE_API_KEY: "", ...environment }), ({ message }) => {
      assert.ok(message.includes("dashboard: ") && !message.includes(KEY), message);
      return true;
    });
  await attempt({});
  await attempt({ HOPLINE_BASE_URL: "https://api.example/v1" });
  await attempt({ HOPLINE_BASE_URL: "http://api.example/v1", HOPLINE_API_KEY: KEY });
  await attempt({ HOPLINE_BASE_URL: "nonsense", HOPLINE_API_KEY: KEY });
});

test("the key is the account's: another one has other records", async (t) => {
  const service = await sandbox(t);
  const account = async (key) => {
    const { url } = await serve(t, { HOPLINE_BASE_URL: service.agent_url, HOPLINE_API_KEY: key });
    return (await (await fetch(`${url}account`)).json()).account;
  };
  assert.equal(await account("one"), await account("one"));
  assert.notEqual(await account("one"), await account("two"));
});
