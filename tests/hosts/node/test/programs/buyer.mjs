// Buys one session for each of its intents, and dies where it is told to: `POINT` is `keep:2`, `kept:2`, `send:1`, `sent:1`.
import { AgentClient, FolderStore } from "hopline";

const [point, at] = (process.env.POINT ?? "").split(":");
const seen = {};

function here(name) {
  seen[name] = (seen[name] ?? 0) + 1;
  if (name === point && seen[name] === Number(at)) process.kill(process.pid, "SIGKILL");
}

class Mortal extends FolderStore {
  async keep(record, data) {
    here("keep");
    await super.keep(record, data);
    here("kept");
  }
  async remove(record) {
    here("remove");
    await super.remove(record);
  }
}

const agent = new AgentClient({
  store: new Mortal(process.env.FOLDER),
  fetch: async (url, init) => {
    here(init.method === "POST" ? "send" : "read");
    const answer = await fetch(url, init);
    // The whole answer is here before the program dies of it.
    const body = await answer.arrayBuffer();
    here(init.method === "POST" ? "sent" : "was read");
    return new Response(body, { status: answer.status, headers: answer.headers });
  },
});
const wanted = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };
const bought = await Promise.all(JSON.parse(process.env.INTENTS).map(async (intent) => {
  // Whoever has it for the moment is gone soon, or buys it.
  for (;;) {
    try {
      return (await agent.openSession(wanted, { intent })).session_id;
    } catch (error) {
      if (error.kind !== "busy" && error.kind !== "in_doubt" && error.kind !== "unavailable") throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}));
console.log(JSON.stringify(bought));
await agent.close();
