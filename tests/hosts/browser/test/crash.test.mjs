// Pages that end in the middle of a purchase, however a page can end, and go on with it.
import assert from "node:assert/strict";
import { mkdtemp, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";

import { chromium } from "playwright-core";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { LAUNCH, account, open, stage } from "./lib/chromium.mjs";
import { policy, site } from "./lib/site.mjs";

const JOB = ["job-17"];

/** Buys in a page, up to a point or to the end. */
async function buy(page, service, intents, options = {}) {
  const given = [account(service), WANTED, intents, options];
  const run = async (all) => {
    const { buy } = await import("/buyer.mjs");
    globalThis.buying = buy(...all);
    globalThis.buying.catch(() => {});
  };
  await page.evaluate(run, given);
  if (!options.point) return page.evaluate(() => buying);
  await page.waitForFunction(() => globalThis.reached);
}

/** Each way to end a page, and the page that comes after it. */
const ENDS = {
  "the page is reloaded": async ({ page }) => {
    await page.reload();
    await page.waitForFunction(() => "hopline" in globalThis);
    return page;
  },
  "the tab is closed": async ({ page, fresh }) => {
    await page.close();
    return fresh();
  },
  "the page goes elsewhere and another tab goes on": async ({ page, fresh }) => {
    await page.goto("about:blank");
    return fresh();
  },
  "its process crashes": async ({ page, fresh }) => {
    const crashed = new Promise((resolve) => page.once("crash", resolve));
    page.goto("chrome://crash").catch(() => {});
    await crashed;
    return fresh();
  },
};

describe("a purchase is charged once", { concurrency: 4 }, () => {
  for (const [how, end] of Object.entries(ENDS)) {
    for (const point of ["put:1", "was put:1", "send:1", "sent:1", "put:2", "was put:2", "read:1", "was read:1"]) {
      test(`though at ${point} ${how}`, async (t) => {
        const service = await sandbox(t, "--provisioning-ms", "100");
        const here = await stage(t, service);
        await buy(here.page, service, JOB, { point });
        const [bought] = await buy(await end(here), service, JOB);
        const { charges, sessions } = await service.state();
        assert.deepEqual(charges.map(({ session_id }) => session_id), [bought]);
        assert.deepEqual(sessions.map(({ status }) => status), ["active"]);
      });
    }
  }
});

test("a browser that is killed at any point and started again has lost nothing", { timeout: 120_000 }, async (t) => {
  for (const point of ["was put:1", "sent:1", "was put:2"]) {
    const service = await sandbox(t, "--provisioning-ms", "100");
    const url = `${await site(t, { csp: policy(new URL(service.agent_url).origin) })}/page.html`;
    const profile = await mkdtemp(join(tmpdir(), "hopline-browser-"));
    t.after(() => rm(profile, { recursive: true, force: true, maxRetries: 5 }));
    const first = await chromium.launchPersistentContext(profile, LAUNCH);
    t.after(() => first.close());
    await buy(await open(first, url), service, JOB, { point });
    // The lock of a profile names the process that has it.
    const killed = Number((await readlink(join(profile, "SingletonLock"))).split("-").at(-1));
    const gone = new Promise((resolve) => first.once("close", resolve));
    process.kill(killed, "SIGKILL");
    await gone;
    const second = await chromium.launchPersistentContext(profile, LAUNCH);
    t.after(() => second.close());
    const [bought] = await buy(await open(second, url), service, JOB);
    assert.deepEqual((await service.state()).charges.map(({ session_id }) => session_id), [bought], point);
    await second.close();
  }
});

test("two tabs of one store buy each intent once, and one that closes leaves its own to the other", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "50-300", "--balance", "1000");
  const { page, fresh } = await stage(t, service);
  const intents = Array.from({ length: 30 }, (_, n) => `job-${n}`);
  const tabs = [page, await fresh()];
  // Ten are the one's, ten the other's, and ten whose they will be.
  await Promise.all(tabs.map((tab, n) => buy(tab, service, intents.slice(10 * n, 10 * n + 10))));
  const tried = await Promise.all(tabs.map((tab) => buy(tab, service, intents, { once: true })));
  // The client that comes second is told so, and nothing more.
  for (const n of intents.keys()) assert.equal(tried.filter((each) => each[n] === "busy").length, 1, intents[n]);
  assert.equal((await service.state()).charges.length, 30);
  await tabs[0].close();
  const all = await buy(tabs[1], service, intents);
  assert.deepEqual(all, intents.map((_, n) => tried.find((each) => each[n] !== "busy")[n]));
  assert.equal((await service.state()).charges.length, 30);
});
