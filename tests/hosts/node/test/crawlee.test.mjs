// `hopline/crawlee`: Crawlee's crawlers over a pool, with Crawlee's own pool of a thousand sessions as it is.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { HoplineHttpClient } from "hopline/crawlee";

import { eachBlockChangedItsExit } from "./lib/blocks.mjs";
import { folder, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

const { Configuration, HttpCrawler, log } = tool("@crawlee/http");
log.setLevel(log.LEVELS.OFF);

const site = (t, ...options) => sandbox(t, "--session-limit", "1000", "--balance", "100000", "--tls", folder(), ...options);
const visits = async (service) => (await service.control("visits")).visits;
const at = (service, name, path = "/") => new URL(path, service.tls_target.replace("127.0.0.1", `${name}.localhost`)).href;

async function open(t, service, size, more) {
  const agent = service.agent({ dailyCapUsd: 1000 });
  return agent.openPool("shop", { size, session_type: "dynamic", product_no: "dynamic-world", protocol: "http", ...more });
}

/** Crawls pages, and gives how often each was handled, with what was said of those that failed. */
async function crawl(pool, urls, { client, ...more } = {}) {
  const [handled, failed] = [[], []];
  const crawler = new HttpCrawler(
    {
      httpClient: new HoplineHttpClient(pool, client?.(() => crawler)),
      additionalMimeTypes: ["application/json"],
      requestHandler: ({ request, body }) => handled.push([new URL(request.url).pathname, String(body)]),
      failedRequestHandler: ({ request }, error) => failed.push([request.url, error.message]),
      // A machine that is busy crawls all the same.
      autoscaledPoolOptions: { desiredConcurrency: 8, minConcurrency: 8, maxConcurrency: 8 },
      statisticsOptions: { logIntervalSecs: 3600 },
      ...more,
    },
    new Configuration({ persistStorage: false }),
  );
  await crawler.run(urls);
  return { handled, failed, crawler };
}

for (const protocol of ["http", "socks5"]) {
  test(`a site that blocks an exit after ten requests gives each page once, by sessions that speak ${protocol}`, { timeout: 120_000 }, async (t) => {
    const service = await site(t);
    await service.control("target", { block_after: 10 });
    const pool = await open(t, service, 3, { protocol });
    const { handled, failed } = await crawl(pool, Array.from({ length: 60 }, (_, number) => at(service, "shop", `/page/${number}`)));
    assert.deepEqual([handled.length, new Set(handled.map(([path]) => path)).size, failed], [60, 60, []]);
    const came = await visits(service);
    const blocked = await eachBlockChangedItsExit(service, came);
    assert.deepEqual([came.length - blocked.length, new Set(came.filter(({ status }) => status === 200).map(({ path }) => path)).size], [60, 60]);
    assert.equal((await pool.status()).leased, 0);
    await pool.close();
  });
}

test("a cookie goes through the exit that got it, and through no other", { timeout: 120_000 }, async (t) => {
  const service = await site(t);
  const seen = [];
  const server = createServer((request, answer) => {
    seen.push([request.socket.remoteAddress, request.headers.cookie]);
    answer.writeHead(200, { "content-type": "text/html", "set-cookie": `exit=${request.socket.remoteAddress}` }).end("<p>a page");
  }).listen(0, "127.0.0.1");
  t.after(() => (server.closeAllConnections(), server.close()));
  await once(server, "listening");
  const pool = await open(t, service, 3);
  const urls = Array.from({ length: 30 }, (_, number) => `http://shop.localhost:${server.address().port}/${number}`);
  // So few sessions of Crawlee's are used again and again.
  const { handled } = await crawl(pool, urls, { sessionPoolOptions: { maxPoolSize: 4 } });
  assert.equal(handled.length, 30);
  const sent = seen.filter(([, cookie]) => cookie !== undefined);
  assert.ok(sent.length > 0 && sent.every(([exit, cookie]) => cookie === `exit=${exit}`), JSON.stringify(seen));
  await pool.close();
});

test("a balance that is empty and comes back costs no page", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, "--session-limit", "1000", "--balance", "0", "--tls", folder());
  const pool = await open(t, service, 2);
  const crawling = crawl(pool, Array.from({ length: 6 }, (_, number) => at(service, "shop", `/${number}`)), { client: () => ({ onStuck: () => assert.fail("it is not stuck") }) });
  while ((await pool.status()).hold?.reason !== "balance") await new Promise((resolve) => setTimeout(resolve, 20));
  await service.control("balance", { amount: "100" });
  await pool.resume();
  const { handled, failed } = await crawling;
  assert.deepEqual([handled.length, failed], [6, []]);
  await pool.close();
});

test("a pool that stays held ends the crawl with its reason, once, and its pages stay in the queue; without a listener they fail with the sentence", { timeout: 120_000 }, async (t) => {
  const service = await site(t);
  const pool = await open(t, service, 2);
  await pool.pause();
  const urls = Array.from({ length: 6 }, (_, number) => at(service, "shop", `/${number}`));
  const why = [];
  const client = (crawler) => ({ onStuck: (sentence) => (why.push(sentence), crawler().stop(sentence)) });
  const stopped = await crawl(pool, urls, { client });
  assert.deepEqual([stopped.handled, stopped.failed, why.length], [[], [], 1]);
  assert.match(why[0], /paused/);
  const left = await stopped.crawler.requestQueue.getInfo();
  assert.equal(left.pendingRequestCount, 6);
  const { failed } = await crawl(pool, urls.map((url) => `${url}?again`));
  assert.equal(failed.length, 6);
  for (const [, message] of failed) assert.match(message, /2 sessions: .*paused/);
  assert.deepEqual([(await visits(service)).length, (await service.state()).charges], [0, []]);
  await pool.close();
});

test("a page whose body nobody reads gives its lease back, and a proxy that refuses is observed once, without its login in the error", { timeout: 120_000 }, async (t) => {
  const service = await site(t);
  const agent = service.agent({ dailyCapUsd: 1000 });
  const seen = [];
  agent.onEvent((event) => event.event === "lease_observed" && seen.push(event.seen));
  const pool = await agent.openPool("unread", { size: 1, session_type: "dynamic", product_no: "dynamic-world", protocol: "http" });
  (await pool.acquire()).release();
  const client = new HoplineHttpClient(pool);
  const https = { rejectUnauthorized: false };
  const { statusCode } = await client.stream({ url: at(service, "shop", "/unread"), timeout: { request: 1000 }, https });
  assert.equal(statusCode, 200);
  const { body } = await client.sendRequest({ url: at(service, "shop", "/read"), https, timeout: { request: 60_000 } });
  assert.equal(JSON.parse(body).path, "/read");
  const { sessions } = await service.state();
  await service.agent().rotateSession({ session_id: sessions[0].session_id });
  seen.length = 0;
  const error = await client.sendRequest({ url: at(service, "shop", "/refused"), https }).catch((error) => error);
  assert.match(error.message, /proxy responded with 502/i);
  assert.equal(error.constructor.name, "SessionError");
  assert.deepEqual(seen, ["proxy"]);
  await pool.close();
});
