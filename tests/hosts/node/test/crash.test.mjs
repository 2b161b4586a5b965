// Real processes that are killed, and started again.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { folder, program, sandbox } from "./lib/sandbox.mjs";

function buyer(service, path, intents, more) {
  return program("buyer.mjs", {
    HOPLINE_API_KEY: service.api_key,
    HOPLINE_BASE_URL: service.agent_url,
    FOLDER: path,
    INTENTS: JSON.stringify(intents),
    ...more,
  });
}

/** Every file below a folder, sockets aside. */
function files(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

for (const POINT of ["claim:1", "claimed:1", "put:1", "was put:1", "send:1", "sent:1", "put:2", "was put:2", "read:1", "was read:1", "put:3", "was put:3"]) {
  test(`killed at ${POINT} and started again, a purchase is charged once`, async (t) => {
    const service = await sandbox(t, "--provisioning-ms", "100");
    const path = folder();
    const killed = await buyer(service, path, ["job-17"], { POINT }).ended;
    assert.equal(killed.signal, "SIGKILL", killed.errors);
    for (const file of files(path)) assert.ok(!readFileSync(file, "utf8").includes(service.api_key), file);
    const again = await buyer(service, path, ["job-17"]).ended;
    assert.equal(again.code, 0, again.errors);
    const { charges, sessions } = await service.state();
    assert.deepEqual(charges.map(({ session_id }) => session_id), JSON.parse(again.out));
    assert.deepEqual(sessions.map(({ status }) => status), ["active"]);
  });
}

test("killed again and again, it is still one purchase", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100");
  const path = folder();
  for (const POINT of ["put:1", "was put:1", "sent:1", "send:1", "sent:1", "was put:2", "was read:1"]) {
    await buyer(service, path, ["job-17"], { POINT }).ended;
  }
  const last = await buyer(service, path, ["job-17"]).ended;
  assert.equal(last.code, 0, last.errors);
  assert.deepEqual((await service.state()).charges.map(({ session_id }) => session_id), JSON.parse(last.out));
});

test("four processes on one folder, each killed and started again once, buy each intent once", { timeout: 120_000 }, async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "100-400", "--session-limit", "1000", "--rate-limit", "100000", "--balance", "10000");
  const path = folder();
  const lists = [0, 1, 2, 3].map((n) => Array.from({ length: 25 }, (_, m) => `job-${n}-${m}`));
  let [over, lost] = [false, 0];
  t.after(() => (over = true));
  // Of some 400 answers about one in twenty is lost.
  const lose = async () => {
    for (; !over && lost < 20; lost += 1) {
      await service.fault({ kind: "drop_after" });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  // So many purchases are held that each process has one: then all are killed between a send and its answer.
  const held = 76;
  await service.fault({ kind: "in_progress", ms: 600_000 }, "create_session", held);
  const firsts = lists.map((intents) => buyer(service, path, intents));
  while ((await service.state()).in_progress < held) await new Promise((resolve) => setTimeout(resolve, 20));
  firsts.forEach(({ child }) => child.kill("SIGKILL"));
  const signals = (await Promise.all(firsts.map(({ ended }) => ended))).map(({ signal }) => signal);
  assert.equal((await service.state()).in_progress, held, "each was killed between a send and its answer");
  await service.control("clock", { advance_ms: 600_000 });
  const losing = lose().catch((error) => over || assert.fail(error));
  const workers = lists.map(async (intents, n) => {
    const second = await buyer(service, path, intents).ended;
    assert.equal(second.code, 0, second.errors);
    return [signals[n], JSON.parse(second.out)];
  });
  const ended = await Promise.all(workers).finally(() => (over = true));
  await losing;
  const { charges, sessions } = await service.state();
  const bought = ended.flatMap(([, ids]) => ids);
  console.log(`four processes: ${ended.filter(([signal]) => signal === "SIGKILL").length} killed, ${charges.length} charges for ${bought.length} intents, ${lost} answers lost`);
  assert.equal(new Set(bought).size, 100);
  assert.deepEqual([charges.length, sessions.length], [100, 100]);
  assert.ok(ended.every(([signal]) => signal === "SIGKILL"), "each is killed before it is done");
});
