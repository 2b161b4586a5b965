// The dashboard as its users run it: its own server as a process, before a sandbox, in Chromium.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { sandbox } from "../../node/test/lib/sandbox.mjs";
import { profile } from "./lib/chromium.mjs";

const SERVER = fileURLToPath(new URL("../../../examples/dashboard/server.mjs", import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

/** Starts the dashboard's server, and says where it is and what it has printed. */
export async function serve(t, environment) {
  const child = spawn(process.execPath, [SERVER], {
    env: { ...process.env, PORT: "0", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  const served = { child, printed: "" };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (served.printed += text));
  served.url = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${served.printed}`)));
  });
  return served;
}

/** The dashboard before a sandbox of its own, and a page of it. */
export async function dashboard(t, { size = "desktop", sandbox: options = [], prepare } = {}) {
  const service = await sandbox(t, ...options);
  const served = await serve(t, { HOPLINE_BASE_URL: service.agent_url, HOPLINE_API_KEY: service.api_key });
  const context = await profile(t);
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  await page.setViewportSize(SIZES[size]);
  /** Everything that a browser complains of: errors, warnings, and what the policy refused. */
  const told = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && told.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => told.push(`error: ${error.message}`));
  await prepare?.({ page, context, service });
  await page.goto(served.url);
  const here = { service, served, context, page, told };
  return Object.assign(here, {
    /** Chooses a product and waits for its quote. */
    async choose(product_no, quantity = "1") {
      await page.check(`input[value="${product_no}"]`);
      await page.fill("#quantity", quantity);
      await page.waitForSelector("#ticket .total:not(:empty)");
    },
    order: page.locator("#ticket button[type=submit]"),
    /** Waits for so many sessions with a status. */
    sessions: (status, count = 1) =>
      page.waitForFunction(
        ([status, count]) =>
          [...document.querySelectorAll(".session > .pill")].filter(({ textContent }) => textContent === status).length === count,
        [status, count],
      ),
    charges: async () => (await service.state()).charges,
    /** Waits until the service has charged so often. */
    async charged(count) {
      for (let tries = 0; tries < 1000; tries += 1) {
        if ((await here.charges()).length >= count) return;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      assert.fail(`the service has not charged ${count} times`);
    },
    /** The findings of axe that keep people out, in light and in dark. */
    async accessible(where) {
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.evaluate(AXE);
        const { violations, passes } = await page.evaluate(() =>
          globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
        );
        assert.ok(passes.length > 20, "axe looked at next to nothing");
        const found = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        assert.deepEqual(
          found.map(({ id, nodes }) => `${where}, ${colorScheme}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`),
          [],
        );
      }
    },
    /** The page is as wide as the window: nobody scrolls sideways. */
    async fits(where) {
      const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= window, `${where}: ${wide} px in a window of ${window} px`);
    },
  });
}
