// The worker of a bundled page, as a plain file.
import { AgentClient, IndexedDBStore } from "./hopline/web.mjs";

self.onmessage = async ({ data: { client, wanted, options } }) => {
  const agent = new AgentClient({ ...client, store: new IndexedDBStore("records") });
  try {
    self.postMessage({ session_id: (await agent.openSession(wanted, options)).session_id });
  } catch (error) {
    self.postMessage({ error: error.message });
  }
};
