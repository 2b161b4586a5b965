// Many at once in one page.
import assert from "node:assert/strict";
import { test } from "node:test";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { stage } from "./lib/chromium.mjs";

test("100 sessions at once with one answer in twenty lost: each is active, each is charged once", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100-1500", "--session-limit", "1000", "--rate-limit", "100000", "--balance", "10000");
  const { page } = await stage(t, service);
  await page.exposeFunction("lose", () => service.fault({ kind: "html", status: 502, after: true }));
  const told = await page.evaluate(async (wanted) => {
    let [sent, lost] = [0, 0];
    const agent = new hopline.AgentClient({
      ...service,
      store: new hopline.IndexedDBStore("records"),
      fetch: async (url, init) => {
        sent += 1;
        if (sent % 20 === 0) {
          lost += 1;
          await lose();
        }
        return fetch(url, init);
      },
    });
    // A caller that lost every answer to it, which chance allows, starts the same intent again.
    const open = (intent) => agent.openSession(wanted, { intent }).catch((error) => (error.effect === "unknown" ? open(intent) : Promise.reject(error)));
    const opened = await Promise.all(Array.from({ length: 100 }, (_, n) => open(`job-${n}`)));
    await agent.close();
    return { sent, lost, phases: opened.map(({ phase }) => phase), ids: opened.map(({ session_id }) => session_id) };
  }, WANTED);
  const { charges, sessions } = await service.state();
  console.log(`many: ${told.sent} requests, ${told.lost} answers lost, ${charges.length} charges`);
  assert.ok(told.lost >= 10 && told.phases.every((phase) => phase === "ready"));
  assert.equal(new Set(told.ids).size, 100);
  assert.deepEqual([charges.length, sessions.length], [100, 100]);
  assert.ok(sessions.every(({ status }) => status === "active"));
});
