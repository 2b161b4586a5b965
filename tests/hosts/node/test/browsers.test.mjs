// Chromium over a pool: Playwright by a context for each exit, Puppeteer by a port on this machine.
import assert from "node:assert/strict";
import { test } from "node:test";

import { PoolContexts } from "hopline/playwright";

import { eachBlockChangedItsExit } from "./lib/blocks.mjs";
import { folder, sandbox } from "./lib/sandbox.mjs";
import { lacks, tool } from "./lib/tools.mjs";

const skip = lacks("chromium");
const LAUNCH = { executablePath: process.env.HOPLINE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--ignore-certificate-errors", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"], timeout: 60_000 };

const site = (t, ...options) => sandbox(t, "--session-limit", "1000", "--balance", "100000", "--tls", folder(), ...options);
// The sites of a page and of its icon are one, so each page is asked for by a path of its own.
const visits = async (service) => (await service.control("visits")).visits.filter(({ path }) => path.startsWith("/page/"));

async function open(t, service, protocol, size) {
  const agent = service.agent({ dailyCapUsd: 1000 });
  return agent.openPool("shop", { size, session_type: "dynamic", product_no: "dynamic-world", protocol });
}

/** Visits pages, three at a time, until each was given. */
async function crawl(service, count, visit) {
  const pages = Array.from({ length: count }, (_, number) => new URL(`/page/${number}`, service.tls_target).href);
  const given = [];
  const work = async () => {
    for (let url = pages.shift(); url !== undefined; url = pages.shift()) {
      const status = await visit(url);
      if (status === 200) given.push(url);
      else pages.push(url);
    }
  };
  await Promise.all(Array.from({ length: 3 }, work));
  return given;
}

async function judge(service, given, count) {
  const came = await visits(service);
  const blocked = await eachBlockChangedItsExit(service, came);
  assert.deepEqual([given.length, new Set(given).size, came.length - blocked.length], [count, count, count]);
}

test("Playwright: a site that blocks an exit after so many requests gives each page once, and a context is of one exit", { skip, timeout: 180_000 }, async (t) => {
  const service = await site(t);
  await service.control("target", { block_after: 7 });
  const pool = await open(t, service, "http", 3);
  const browser = await tool("playwright").chromium.launch(LAUNCH);
  t.after(() => browser.close());
  const contexts = new PoolContexts(browser, pool, { locale: "de-DE" });
  const of = new Map();
  const given = await crawl(service, 18, (url) => contexts.withLease({ target: new URL(url).hostname }, async (lease, context) => {
    const exit = `${lease.sessionId}/${lease.generation}`;
    assert.ok(!of.has(context) || of.get(context) === exit);
    of.set(context, exit);
    const page = await context.newPage();
    const response = await page.goto(url);
    lease.observe(response.status());
    return response.status();
  }));
  assert.ok(browser.contexts().length <= 3 && browser.contexts().every((context) => context.pages().length === 0));
  await judge(service, given, 18);
  await contexts.close();
  assert.deepEqual([browser.contexts().length, (await pool.status()).leased], [0, 0]);
  await assert.rejects(contexts.withLease(() => {}), /were closed/);
});

test("Playwright: leases of one exit share a context, and one that somebody closes is made anew", { skip, timeout: 60_000 }, async (t) => {
  const service = await site(t);
  const agent = service.agent({ dailyCapUsd: 1000 });
  const pool = await agent.openPool("shared", { size: 1, leasesPerSession: 3, session_type: "dynamic", product_no: "dynamic-world", protocol: "http" });
  const browser = await tool("playwright").chromium.launch(LAUNCH);
  t.after(() => browser.close());
  const contexts = new PoolContexts(browser, pool);
  const together = [];
  const arrived = new Promise((resolve) => (together.done = resolve));
  const one = () => contexts.withLease(async (_, context) => {
    if (together.push(context) === 3) together.done();
    await arrived;
    return context;
  });
  const same = await Promise.all([one(), one(), one()]);
  assert.deepEqual([new Set(same).size, browser.contexts().length], [1, 1]);
  await same[0].close();
  const [again, failure] = [await contexts.withLease((_, context) => context), new Error("of the program")];
  assert.ok(again !== same[0] && browser.contexts().length === 1);
  await assert.rejects(contexts.withLease(async (_, context) => {
    await context.newPage();
    throw failure;
  }), failure);
  assert.deepEqual([again.pages().length, (await pool.status()).leased], [0, 0]);
  await contexts.close();
});

test("Puppeteer: sessions that speak SOCKS5 lead it by their ports, and each page comes once", { skip, timeout: 180_000 }, async (t) => {
  const service = await site(t);
  await service.control("target", { block_after: 7 });
  const pool = await open(t, service, "socks5", 3);
  const puppeteer = tool("puppeteer-core").default ?? tool("puppeteer-core");
  const browser = await puppeteer.launch(LAUNCH);
  t.after(() => browser.close());
  const given = await crawl(service, 18, (url) => pool.withLease({ target: new URL(url).hostname }, async (lease) => {
    const port = await lease.proxy.onLoopback();
    // A browser uses no proxy for this machine's own addresses, unless it is told to.
    const context = await browser.createBrowserContext({ proxyServer: port.url, proxyBypassList: ["<-loopback>"] });
    try {
      const response = await (await context.newPage()).goto(url);
      lease.observe(response.status());
      return response.status();
    } finally {
      await context.close();
    }
  }));
  await judge(service, given, 18);
  assert.equal((await pool.status()).leased, 0);
});
