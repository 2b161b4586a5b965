// Real services of another origin, as a browser shows them to a page.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { open, profile, stage } from "./lib/chromium.mjs";
import { policy, site } from "./lib/site.mjs";

const ALLOWED = { "access-control-allow-origin": "*", "access-control-allow-headers": "*, x-api-key, idempotency-key, content-type", "access-control-allow-methods": "GET, POST, DELETE" };
const JSON_TYPE = { "content-type": "application/json" };

/** A service that does with each request what it is told, and a page that may talk to it. Preflights are answered. */
async function service(t, react, allowed = ALLOWED) {
  const seen = [];
  const handle = async (request, response) => {
    for (const [name, value] of Object.entries(allowed)) response.setHeader(name, value);
    if (request.method === "OPTIONS") return response.writeHead(204).end();
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.push({ method: request.method, path: request.url, key: request.headers["idempotency-key"], body: Buffer.concat(chunks).toString() });
    return react(request, response, seen.length);
  };
  const server = createServer((request, response) => handle(request, response).catch(() => response.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const page = await open(await profile(t), `${await site(t, { csp: policy(origin) })}/page.html`);
  await page.evaluate((baseUrl) => (globalThis.service = { apiKey: "canary-key", baseUrl }), `${origin}/v1`);
  return { seen, page };
}

const answer = (response, status, data, meta = {}, headers = {}) => response.writeHead(status, { ...JSON_TYPE, ...headers }).end(JSON.stringify({ success: true, data, meta }));

/** The result of a purchase. */
const buy = (page, options = {}) =>
  page.evaluate(async ([wanted, options]) => {
    const agent = new hopline.AgentClient(service);
    const error = await agent.createSession(wanted, options).catch((error) => error);
    const told = { ...error, message: error.message, cause: error.cause?.message };
    await agent.close();
    return told;
  }, [WANTED, options]);

test("headers that a page can't see are not needed", async (t) => {
  const { seen, page } = await service(t, (request, response, count) =>
    count === 1
      ? response.writeHead(429, { ...JSON_TYPE, "retry-after": "60" }).end(JSON.stringify({ success: false, data: null, error: { code: "RATE_LIMIT_EXCEEDED", message: "slow", details: { retry_after: 1 } }, meta: { request_id: "r-1" } }))
      : answer(response, 200, { balance: 7, currency: "USD" }),
  );
  const told = await page.evaluate(async () => {
    const { headers } = await fetch(`${service.baseUrl}/x`);
    return [headers.get("date"), headers.get("retry-after"), headers.get("content-type")];
  });
  assert.deepEqual(told, [null, null, "application/json"]);
  seen.length = 0;
  const began = performance.now();
  const { balance } = await page.evaluate(() => new hopline.AgentClient(service).getBalance());
  assert.equal(balance, 7);
  const took = performance.now() - began;
  // The header says a minute, which nobody here can know; what the answer itself says is obeyed.
  assert.ok(took >= 1000 && took < 20_000, `took ${took}`);
  assert.equal(seen.length, 2);
});

test("headers that a service exposes are obeyed", async (t) => {
  const { page } = await service(t, (_, response) =>
    response.writeHead(429, { ...JSON_TYPE, "retry-after": "3600" }).end(JSON.stringify({ success: false, data: null, error: { code: "RATE_LIMIT_EXCEEDED", message: "slow" } })), { ...ALLOWED, "access-control-expose-headers": "retry-after" });
  const told = await page.evaluate(async () => {
    const error = await new hopline.AgentClient(service).getBalance().catch((error) => error);
    return error.retry_at - Date.now();
  });
  assert.ok(told > 3_500_000 && told <= 3_600_000, told);
});

/** A purchase whose answer is lost, and that the next page resumes. */
async function resumed(t, meta) {
  let posts = 0;
  const { seen, page } = await service(t, (request, response) => {
    if (request.method === "GET") return answer(response, 200, { balance: 7, currency: "USD" }, meta());
    posts += 1;
    return posts === 1 ? request.socket.destroy() : answer(response, 202, { session_id: "ses_1", status: "creating" }, meta());
  });
  const told = await page.evaluate(async (wanted) => {
    const agent = (more) => new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records"), ...more });
    // Chromium itself sends once more what was lost on a connection that it had; this one does not even begin.
    const first = agent({ fetch: async () => { throw new TypeError("lost"); } });
    const lost = await first.createSession(wanted, { intent: "job-17", attempts: 1 }).catch((error) => error);
    await first.close();
    const second = agent();
    const resumed = await second.resume(lost.record).catch((error) => error);
    const saved = await second.saved();
    await second.close();
    return { lost: lost.kind, session_id: resumed.session_id, kind: resumed.kind, effect: resumed.effect, advice: resumed.advice, message: resumed.message, saved: saved.map(({ holds }) => holds) };
  }, WANTED);
  return { seen, told };
}

test("a restored purchase learns the time from the answer itself, since the date is hidden", async (t) => {
  const { seen, told } = await resumed(t, () => ({ request_id: "r", timestamp: new Date().toISOString() }));
  assert.deepEqual([told.lost, told.session_id], ["in_doubt", "ses_1"], told.message);
  assert.equal(seen[0].method, "GET");
  assert.ok(seen.slice(1).every(({ method, key }) => method === "POST" && key === seen[1].key));
});

test("a restored purchase is never sent again where nobody says what time it is", async (t) => {
  const { seen, told } = await resumed(t, () => ({ request_id: "r" }));
  assert.deepEqual([told.lost, told.kind, told.effect, told.advice], ["in_doubt", "in_doubt", "unknown", "check_account"], told.message);
  assert.match(told.message, /its age is not known; money may have moved/);
  assert.ok(seen.every(({ method }) => method === "GET"));
});

test("a service that does not allow the page is a clear error, and a purchase is not called failed", async (t) => {
  const { seen, page } = await service(t, (_, response) => answer(response, 200, {}), {});
  const read = await page.evaluate(() => new hopline.AgentClient(service).getBalance({}, { attempts: 1 }).catch((error) => ({ ...error, message: error.message, cause: error.cause?.message })));
  assert.deepEqual([read.kind, read.effect], ["unavailable", "none"]);
  assert.match(read.cause, /Failed to fetch; a browser does not say why: .*CORS.*connect-src/);
  const bought = await buy(page, { attempts: 1 });
  // The preflight was refused, which the browser knows and does not tell.
  assert.equal(seen.length, 0);
  assert.deepEqual([bought.kind, bought.effect, bought.advice, bought.cause], ["in_doubt", "unknown", "resume", read.cause]);
});

test("a page whose own policy forbids the service is a clear error", async (t) => {
  const run = await sandbox(t);
  const { page } = await stage(t, run, { csp: policy() });
  await page.evaluate((client) => (globalThis.service = client), { apiKey: run.api_key, baseUrl: run.agent_url });
  const bought = await buy(page, { attempts: 1 });
  assert.deepEqual([bought.kind, bought.effect], ["in_doubt", "unknown"]);
  assert.match(bought.cause, /connect-src/);
  assert.match(page.told.join("\n"), /Content Security Policy/, "the browser's console says which");
});

test("a redirect is not followed, and is no answer", async (t) => {
  for (const status of [301, 302, 303, 307, 308]) {
    const { seen, page } = await service(t, (request, response) => response.writeHead(status, { location: "/v1/elsewhere" }).end());
    const told = await buy(page, { attempts: 1 });
    assert.deepEqual([told.kind, told.effect, told.status, told.cause], ["in_doubt", "unknown", 0, "the service answered with a redirect, which is not followed"], told.message);
    assert.deepEqual(seen.map(({ path }) => path), ["/v1/sessions"]);
  }
});

test("Chromium itself sends once more what was lost on a connection that it had, with the same bytes", async (t) => {
  const { seen, page } = await service(t, (request, response) => (request.method === "GET" ? answer(response, 200, { balance: 7, currency: "USD" }) : request.socket.destroy()));
  await page.evaluate(() => new hopline.AgentClient(service).getBalance());
  const told = await buy(page, { attempts: 1 });
  assert.deepEqual([told.kind, told.effect], ["in_doubt", "unknown"]);
  const posts = seen.filter(({ method }) => method === "POST");
  assert.ok(posts.length >= 2);
  for (const post of posts) assert.deepEqual(post, posts[0]);
});

test("a signal gives a call up, and nobody waits for what is given up", async (t) => {
  const { page } = await service(t, () => {});
  const told = await page.evaluate(async (wanted) => {
    await hopline.load();
    const began = performance.now();
    const error = await new hopline.AgentClient(service).createSession(wanted, { signal: AbortSignal.timeout(200), timeoutMs: 120_000 }).catch((error) => error);
    return [error.kind, error.effect, error.cause.name, performance.now() - began];
  }, WANTED);
  assert.deepEqual(told.slice(0, 3), ["cancelled", "unknown", "TimeoutError"]);
  assert.ok(told[3] < 100_000);
});

test("a dashboard needs no key: its own server is asked, by a path", async (t) => {
  const asked = [];
  const answers = {
    "/api/v1/": (request, response) => {
      asked.push([request.url, request.headers["x-api-key"], request.headers.origin]);
      answer(response, 200, { balance: 7, currency: "USD" });
    },
  };
  const page = await open(await profile(t), `${await site(t, { answers })}/page.html`);
  const told = await page.evaluate(async () => {
    const balances = [];
    for (const baseUrl of ["/api/v1", "./api/v1", `${location.origin}/api/v1/`]) balances.push((await new hopline.AgentClient({ baseUrl }).getBalance()).balance);
    return balances;
  });
  assert.deepEqual(told, [7, 7, 7]);
  assert.deepEqual(asked, Array(3).fill(["/api/v1/billing/balance", undefined, undefined]));
});
