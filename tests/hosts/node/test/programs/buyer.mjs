// Buys one session for each of its intents, and dies where it is told to.
import { AgentClient } from "hopline";

import { MortalStore, mortalFetch } from "./mortal.mjs";

const agent = new AgentClient({ store: new MortalStore(process.env.FOLDER), fetch: mortalFetch((_, { method }) => method === "POST") });
const wanted = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };
const bought = await Promise.all(JSON.parse(process.env.INTENTS).map(async (intent) => {
  // A client that has it for the moment is gone soon, or buys.
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
