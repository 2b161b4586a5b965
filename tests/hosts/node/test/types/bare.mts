// A program without the types of a browser or of Node: nothing but the language itself is needed.
import { AgentClient, HoplineError, sessionEvent } from "hopline";

export async function buy(): Promise<string> {
  const agent = new AgentClient({ baseUrl: "https://api.example/v1" });
  try {
    const open = await agent.openSession({ session_type: "dynamic", product_no: "p" }, { intent: "job-17" });
    await agent.reportSessionEvent({ session_id: open.session_id, event: sessionEvent({ status: 200 }) });
    await open.dispose();
    return open.session_id;
  } catch (error) {
    return error instanceof HoplineError ? error.kind : "";
  }
}
