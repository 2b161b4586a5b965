// TLS with an authority of one's own, which Chromium is told to trust by its user's database, as on any Linux machine.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { chromium } from "playwright-core";

import { WANTED, folder, sandbox } from "../../node/test/lib/sandbox.mjs";
import { lacks } from "../../node/test/lib/tools.mjs";
import { LAUNCH, open } from "./lib/page.mjs";
import { policy, site } from "./lib/site.mjs";

const skip = lacks("certutil");

test("a purchase goes where the authority has signed the certificate, and at one that is refused nothing is bought", { skip }, async (t) => {
  const service = await sandbox(t, "--tls", folder());
  const home = folder();
  const database = join(home, ".pki/nssdb");
  mkdirSync(database, { recursive: true });
  const certutil = (...told) => execFileSync(process.env.HOPLINE_CERTUTIL ?? "certutil", ["-d", `sql:${database}`, ...told]);
  certutil("-N", "--empty-password");
  certutil("-A", "-t", "C,,", "-n", "sandbox", "-i", service.tls_ca);
  const browser = await chromium.launch({ ...LAUNCH, env: { ...process.env, HOME: home } });
  t.after(() => browser.close());

  const urls = [service.tls_right, service.tls_wrong_name, service.tls_expired, service.tls_unknown_ca];
  const page = await open(browser, `${await site(t, { csp: policy(...urls.map((url) => new URL(url).origin)) })}/page.html`);
  const [bought, ...others] = await page.evaluate(async ([apiKey, urls, wanted]) => {
    const endings = [];
    for (const baseUrl of urls) {
      const agent = new hopline.AgentClient({ apiKey, baseUrl });
      const { kind, effect, session_id } = await agent.createSession(wanted, { intent: "job", attempts: 1 }).catch((error) => error);
      endings.push({ kind, effect, session_id, saved: (await agent.saved()).length });
      await agent.close();
    }
    return endings;
  }, [service.api_key, urls, WANTED]);
  assert.match(bought.session_id, /./);
  // A browser tells a page nothing of why there was no answer.
  assert.deepEqual(others, Array(3).fill({ kind: "in_doubt", effect: "unknown", session_id: undefined, saved: 1 }));
  for (const error of ["COMMON_NAME_INVALID", "DATE_INVALID", "AUTHORITY_INVALID"]) assert.ok(page.told.some((line) => line.includes(`ERR_CERT_${error}`)), page.told.join("\n"));
  assert.equal((await service.state()).charges.length, 1);
});
