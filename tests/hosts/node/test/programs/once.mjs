// Buys once at each base URL of its arguments, with one send, and prints what came of it.
import { AgentClient } from "hopline";

const endings = [];
for (const baseUrl of process.argv.slice(2)) {
  const agent = new AgentClient({ apiKey: process.env.KEY, baseUrl });
  const wanted = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };
  const came = await agent.createSession(wanted, { intent: "job", attempts: 1 }).catch((error) => error);
  endings.push({ kind: came.kind, effect: came.effect, message: came.message, saved: (await agent.saved()).length, session_id: came.session_id });
  await agent.close();
}
console.log(JSON.stringify(endings));
