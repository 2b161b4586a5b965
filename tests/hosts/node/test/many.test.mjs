// Many at once in one client.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

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

for (const [name, fetch] of Object.entries({ "Node's own fetch": undefined, "the fetch of undici 6": tool("undici6").fetch, "the fetch of undici 7": tool("undici").fetch })) {
  test(`a thousand purchases at once over ${name}: none is in doubt, and each is charged once`, { timeout: 240_000 }, async (t) => {
    const service = await sandbox(t, "--session-limit", "2000", "--rate-limit", "1000000", "--balance", "100000");
    const agent = service.agent({ fetch, retry: { timeoutMs: 120_000, windowMs: 200_000 } });
    const told = [];
    agent.onEvent(({ event }) => ["in_doubt", "repeating"].includes(event) && told.push(event));
    const sold = await Promise.all(Array.from({ length: 1000 }, () => agent.createSession(WANTED)));
    assert.deepEqual([new Set(sold.map(({ session_id }) => session_id)).size, (await service.state()).charges.length, told, await agent.saved()], [1000, 1000, [], []]);
  });
}
