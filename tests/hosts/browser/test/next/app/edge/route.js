import { AgentClient } from "hopline";

export const runtime = "edge";
export const dynamic = "force-dynamic";

export async function GET() {
  const agent = new AgentClient({ baseUrl: process.env.HOPLINE_BASE_URL, apiKey: process.env.HOPLINE_API_KEY });
  const { balance } = await agent.getBalance();
  await agent.close();
  return Response.json({ balance });
}
