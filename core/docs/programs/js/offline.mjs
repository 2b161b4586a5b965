import { AgentClient } from "hopline";

/** Answers every request in the envelope of the API. */
const fetch = async () =>
  Response.json({ success: true, data: { balance: 100 }, error: null, meta: { request_id: "r-1", timestamp: new Date().toISOString() } });

const agent = new AgentClient({ baseUrl: "https://api.example/v1", apiKey: "test", fetch });
console.log(await agent.getBalance());
