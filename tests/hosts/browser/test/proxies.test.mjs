// Chromium under Playwright through a session's proxy: the login that the proxy is given, and what `observe` makes of what a page meets.
import assert from "node:assert/strict";
import { test } from "node:test";

import { AgentClient, ProxySettings } from "hopline";
import { chromium } from "playwright-core";

import { ADVICE, peers, proxyOf } from "../../node/test/lib/peers.mjs";
import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { LAUNCH } from "./lib/chromium.mjs";

const PAGE = "http://shop.example/";

async function stage(t) {
  const service = await sandbox(t);
  const browser = await chromium.launch(LAUNCH);
  t.after(() => browser.close());
  /** The outcome of a request through the proxy of this name: its response, or the error. */
  const visit = async (ready, name, login, timeout = 30_000) => {
    const context = await browser.newContext({ proxy: new ProxySettings(proxyOf(ready, "http", name, login)).playwright() });
    const page = await context.newPage();
    const met = await page.goto(PAGE, { timeout }).then((response) => ({ status: response.status() }), (error) => error);
    await context.close();
    return met;
  };
  return { service, visit, ...(await peers(t, service)) };
}

test("a proxy is given the login as it is", async (t) => {
  const { visit, recorded, forget, ...ready } = await stage(t);
  for (const [username, password] of [["søren", "SØREN"], ["ĘdwardĄcki1", "pässword"], [`${"u".repeat(120)}-country-us`, "p".repeat(127)], ["user", "%2F:@/ ?#"]]) {
    await forget();
    assert.deepEqual(await visit(ready, "right", { username, password }), { status: 200 }, username);
    const logins = (await recorded()).logins.filter(({ username }) => username !== null);
    const told = logins.map(({ username, password }) => [username, password].map((bytes) => Buffer.from(bytes, "hex").toString()));
    assert.deepEqual(told.at(-1), [username, password]);
  }
});

test("what a page meets at a proxy that fails is the proxy's", async (t) => {
  const { service, visit, ...ready } = await stage(t);
  const agent = new AgentClient({ apiKey: service.api_key, baseUrl: service.agent_url });
  t.after(() => agent.close());
  const open = await agent.openSession(WANTED);
  // A page's request to an `http:` address is not sent through a tunnel: what the proxy answers is its response.
  const own = { forbids: /^http_403$/, bad_request: /^keep$/ };
  for (const [name, expected] of Object.entries(ADVICE)) {
    const advice = async () => {
      const { verdict, why, reason } = await open.observe(await visit(ready, name, undefined, name === "hangs" ? 2000 : 30_000));
      return why ?? reason ?? verdict;
    };
    await open.observe(200);
    if (name === "hangs") assert.match(await advice(), /^one timeout/);
    assert.match(await advice(), own[name] ?? expected, name);
  }
});
