// Giving up in every phase of a purchase, and going on with it in another page.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { PHASES } from "../../node/test/lib/phases.mjs";
import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { stage } from "./lib/chromium.mjs";

const folders = { "/runner/": fileURLToPath(new URL("../../node/test", import.meta.url)) };

describe("a purchase that is given up is charged once", { concurrency: 4 }, () => {
  for (const [phase, { charged, effects }] of Object.entries(PHASES)) {
    for (const how of ["the intent is started again", "all is resumed"]) {
      test(`${phase}, when ${how} in another page`, async (t) => {
        const service = await sandbox(t, "--provisioning-ms", "700");
        const { page, fresh } = await stage(t, service, { folders });
        const ended = await page.evaluate(async ([phase, wanted]) => {
          const { giveUp } = await import("/runner/lib/phases.mjs");
          return giveUp(hopline, service, new hopline.IndexedDBStore("records"), phase, wanted, { intent: "job-17" });
        }, [phase, WANTED]);
        assert.deepEqual([ended.kind, ended.reason], ["cancelled", "given up"], ended.message);
        assert.ok(effects.includes(ended.effect), ended.message);
        assert.equal((await service.state()).charges.length, charged);
        await page.close();

        const told = await (await fresh()).evaluate(async ([how, wanted]) => {
          const agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
          const all = how === "all is resumed" ? await agent.resumeAll() : [];
          const open = await agent.openSession(wanted, { intent: "job-17", credentials: true });
          return { resumed: all.map(({ status }) => status), session_id: open.session_id, password: open.session.proxy.password.reveal() };
        }, [how, WANTED]);
        // Of what is out of doubt whoever starts its intent asks for it.
        if (how === "all is resumed") assert.deepEqual(told.resumed, ended.effect === "unknown" ? ["fulfilled"] : []);
        const { charges, sessions } = await service.state();
        assert.deepEqual(charges.map(({ session_id }) => session_id), [told.session_id]);
        assert.deepEqual(sessions.map(({ status }) => status), ["active"]);
        if (ended.session_id) assert.equal(told.session_id, ended.session_id);
        assert.match(told.password, /./);
      });
    }
  }
});
