// The package's verdict on JSON texts that nobody here wrote, in Node or in a page, beside what the core alone says of them.
import { AgentClient, HoplineError } from "hopline";

import { Core, StepKind } from "../lib/core.mjs";

const client = { apiKey: "key", baseUrl: "https://api.example/v1" };
const options = { attempts: 1 };

/** The core's own verdict on a body: nothing, or the kind of its error. */
function core(body) {
  const core = new Core(JSON.stringify({ api_key: client.apiKey, base_url: client.baseUrl }), new Uint8Array(16));
  const command = core.start("get_balance", "{}", JSON.stringify(options));
  for (let step; (step = core.poll(0, 0)) !== StepKind.Completed; ) {
    if (step === StepKind.Send) core.respond(core.id, 200, "content-type\napplication/json", body, false, 0, 0);
  }
  const [how, told] = core.take(command);
  core.free();
  return how === "failed" ? told.kind : undefined;
}

/** The caller's view of it. */
async function host(agent) {
  const error = await agent.getBalance({}, options).then(() => undefined, (error) => error);
  return error === undefined || error instanceof HoplineError ? error?.kind : String(error);
}

/**
 * Answers a read with each text, as its data and as the whole body. Texts are in Base64, each after its name. Says how many
 * the suite wants accepted (`y`), refused (`n`) or either (`i`), and which were judged wrongly.
 */
export async function judge(files) {
  const [counted, wrong] = [{ y: 0, n: 0, i: 0 }, []];
  let body;
  const agent = new AgentClient({ ...client, fetch: async () => new Response(body, { headers: { "content-type": "application/json" } }) });
  for (const [name, text] of files) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const [before, after] = ['{"success":true,"data":', "}"].map((part) => new TextEncoder().encode(part));
    body = new Uint8Array([...before, ...bytes, ...after]);
    const [told, expected] = [await host(agent), core(body)];
    if (told !== expected) wrong.push(`${name}: a caller is told ${told}, the core says ${expected}`);
    if (name[0] !== "i" && told !== { n: "protocol" }[name[0]]) wrong.push(`${name}: ${told}`);
    body = bytes;
    const whole = [await host(agent), core(body)];
    if (whole.some((kind) => kind !== "protocol")) wrong.push(`${name} is no envelope: ${whole}`);
    counted[name[0]] += 1;
  }
  await agent.close();
  return { counted, wrong };
}
