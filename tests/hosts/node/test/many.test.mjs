// Many at once in one client.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

test("200 sessions at once with one answer in twenty lost: each is active, each is charged once", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100-1500", "--session-limit", "1000", "--rate-limit", "100000", "--balance", "10000");
  let sent = 0;
  let lost = 0;
  const agent = service.agent({
    store: new FolderStore(folder()),
    fetch: async (url, init) => {
      sent += 1;
      if (sent % 20 === 0) {
        lost += 1;
        await service.fault({ kind: "drop_after" });
      }
      return fetch(url, init);
    },
  });
  const opened = await Promise.all(Array.from({ length: 200 }, (_, n) => agent.openSession(WANTED, { intent: `job-${n}` })));
  const { charges, sessions } = await service.state();
  console.log(`many: ${sent} requests, ${lost} answers lost, ${charges.length} charges`);
  assert.ok(opened.every(({ phase }) => phase === "ready"));
  assert.equal(new Set(opened.map(({ session_id }) => session_id)).size, 200);
  assert.deepEqual([charges.length, sessions.length], [200, 200]);
  assert.ok(sessions.every(({ status }) => status === "active"));
  assert.ok(lost >= 20);
  await agent.close();
});
