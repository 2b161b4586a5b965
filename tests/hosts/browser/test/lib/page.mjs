// Chromium as it is started here, and a page in it.
import assert from "node:assert/strict";

export const LAUNCH = {
  executablePath: process.env.HOPLINE_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  timeout: 60_000,
};

/** Opens a page of the site, and waits until its script has run. The page's output is kept in `page.told`. */
export async function open(context, url) {
  const page = await context.newPage();
  page.told = [];
  // That a site has no icon is of no interest.
  page.on("console", (message) => message.location().url.endsWith("/favicon.ico") || page.told.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => page.told.push(`error: ${error.message}`));
  await page.goto(url);
  await page.waitForFunction(() => "hopline" in globalThis).catch((error) => assert.fail(`${error.message}\n${page.told.join("\n")}`));
  return page;
}

/** The options of a client at a sandbox. */
export const account = ({ api_key, agent_url }) => ({ apiKey: api_key, baseUrl: agent_url });
