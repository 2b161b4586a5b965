import { AgentClient } from "hopline";
import { PostgresStore } from "hopline/postgres";

const store = new PostgresStore(process.env.HOPLINE_STORE); // postgresql://worker@db.example/hopline
const agent = new AgentClient({ store, dailyCapUsd: 40 });
const session = await agent.openSession({ session_type: "dynamic", product_no: "dynamic-world" }, { intent: "job-17" });
console.log(session.session_id);
await agent.close();
