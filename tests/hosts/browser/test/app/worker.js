// Buys what it is told to, and says which session it was.
import { AgentClient, IndexedDBStore } from "hopline";

self.onmessage = async ({ data: { client, wanted, options } }) => {
  const agent = new AgentClient({ ...client, store: new IndexedDBStore("records") });
  try {
    self.postMessage({ session_id: (await agent.openSession(wanted, options)).session_id });
  } catch (error) {
    self.postMessage({ error: error.message });
  }
};
