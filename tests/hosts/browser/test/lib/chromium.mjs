// Chromium under Playwright: one process for a file of tests, and a context of its own, with its own storage, for each test.
import { after } from "node:test";

import { chromium } from "playwright-core";

import { LAUNCH, account, open } from "./page.mjs";
import { policy, site } from "./site.mjs";

export { LAUNCH, account, open };

let launched;
after(async () => (await launched)?.close());

/** The time that a test may take. After that its pages are closed, and whatever it waits for in them fails. */
const LONGEST = 180_000;

/** A browser profile that nothing else uses. */
export async function profile(t, options) {
  launched ??= chromium.launch(LAUNCH);
  const context = await (await launched).newContext(options);
  context.setDefaultTimeout(30_000);
  const timer = setTimeout(() => context.close({ reason: `the test took longer than ${LONGEST / 1000} seconds` }), LONGEST);
  t.after(() => (clearTimeout(timer), context.close()));
  return context;
}

/**
 * A page with the package in it, at a sandbox of another origin: `page.evaluate` finds the package in `hopline`, and what a
 * client needs in `service`.
 */
export async function stage(t, service, options = {}) {
  const { origin } = new URL(service.agent_url);
  const [url, context] = [await site(t, { csp: policy(origin), ...options }), await profile(t)];
  const fresh = async () => {
    const page = await open(context, `${url}/page.html`);
    await page.evaluate((client) => (globalThis.service = client), account(service));
    return page;
  };
  return { url, context, fresh, page: await fresh() };
}
