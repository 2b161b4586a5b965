import { AgentClient } from "hopline";

export const dynamic = "force-dynamic";

export default async function Page() {
  const agent = new AgentClient();
  const { balance } = await agent.getBalance();
  await agent.close();
  return <output>{`${balance} USD`}</output>;
}
