// JSON texts that nobody here wrote. They lie beside the repository, not in it; where they are missing this test says so.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { AgentClient, Core, HoplineError, StepKind } from "hopline";

const FOLDER = join(process.env.HOPLINE_VECTORS, "../../../shared/external/json-test-suite/test_parsing");
const client = { apiKey: "key", baseUrl: "https://api.example/v1" };
const options = { attempts: 1 };

/** What the core alone says of a body: nothing, or the kind of its error. */
function core(body) {
  const core = new Core(JSON.stringify({ api_key: client.apiKey, base_url: client.baseUrl }), new Uint8Array(16));
  const command = core.start("get_balance", "{}", JSON.stringify(options));
  for (let step; (step = core.poll(0, 0)) !== StepKind.Completed; ) {
    if (step === StepKind.Send) core.respond(core.id, 200, ["content-type", "application/json"], body, false, 0, 0);
  }
  const [how, told] = core.take(command);
  core.free();
  return how === "failed" ? JSON.parse(told).kind : undefined;
}

/** What a caller is told of it. */
async function host(agent) {
  const error = await agent.getBalance({}, options).then(() => undefined, (error) => error);
  assert.ok(error === undefined || error instanceof HoplineError, String(error));
  return error?.kind;
}

test("every JSON text is data or an error for the caller just as it is for the core", async (t) => {
  if (!existsSync(FOLDER)) return t.skip("there is no ../shared/external/json-test-suite");
  const counted = { y: 0, n: 0, i: 0 };
  let body;
  const fetch = async () => new Response(body, { headers: { "content-type": "application/json" } });
  const agent = new AgentClient({ ...client, fetch });
  t.after(() => agent.close());
  for (const name of readdirSync(FOLDER)) {
    const text = readFileSync(join(FOLDER, name));
    body = Buffer.concat([Buffer.from('{"success":true,"data":'), text, Buffer.from("}")]);
    const told = await host(agent);
    assert.equal(told, core(body), name);
    if (name[0] !== "i") assert.equal(told, { y: undefined, n: "protocol" }[name[0]], name);
    body = text;
    assert.deepEqual([await host(agent), core(body)], ["protocol", "protocol"], `${name} is no envelope`);
    counted[name[0]] += 1;
  }
  console.log(`${counted.y} accepted, ${counted.n} refused, ${counted.i} either`);
  assert.ok(Object.values(counted).every((count) => count > 0));
});
