// Giving up in every phase of a purchase, and going on with it later.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import * as hopline from "hopline";

import { PHASES, giveUp } from "./lib/phases.mjs";
import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

describe("a purchase that is given up is charged once", { concurrency: 4 }, () => {
  for (const [phase, { charged, effects }] of Object.entries(PHASES)) {
    for (const how of ["the intent is started again", "all is resumed"]) {
      test(`${phase}, when ${how}`, async (t) => {
        const service = await sandbox(t, "--provisioning-ms", "700");
        const path = folder();
        const store = new hopline.FolderStore(path);
        const ended = await giveUp(hopline, { apiKey: service.api_key, baseUrl: service.agent_url }, store, phase, WANTED, { intent: "job-17" });
        assert.deepEqual([ended.kind, ended.reason], ["cancelled", "given up"], ended.message);
        assert.ok(effects.includes(ended.effect), ended.message);
        assert.equal((await service.state()).charges.length, charged);
        await store.close();

        const agent = service.agent({ store: new hopline.FolderStore(path) });
        if (how === "all is resumed") {
          const all = await agent.resumeAll();
          // Of what is out of doubt whoever starts its intent asks for it.
          assert.deepEqual(all.map(({ status }) => status), ended.effect === "unknown" ? ["fulfilled"] : []);
        }
        const open = await agent.openSession(WANTED, { intent: "job-17", credentials: true });
        const { charges, sessions } = await service.state();
        assert.deepEqual(charges.map(({ session_id }) => session_id), [open.session_id]);
        assert.deepEqual(sessions.map(({ status }) => status), ["active"]);
        if (ended.session_id) assert.equal(open.session_id, ended.session_id);
        assert.match(open.session.proxy.password.reveal(), /./);
      });
    }
  }
});
