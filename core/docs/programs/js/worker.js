import { AgentClient, HoplineError, IndexedDBStore } from "hopline";

/** @type {AgentClient | undefined} */
let agent;
self.onmessage = async ({ data: { account, intent } }) => {
  agent ??= new AgentClient({ baseUrl: "/api/v1", account, store: new IndexedDBStore("hopline-records") });
  try {
    const { session_id } = await agent.openSession({ session_type: "dynamic", product_no: "dynamic-world" }, { intent });
    self.postMessage({ session_id });
  } catch (error) {
    if (!(error instanceof HoplineError)) throw error;
    self.postMessage({ message: error.message });
  }
};
