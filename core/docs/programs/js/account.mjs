import { AgentClient } from "hopline";

const agent = new AgentClient();
const { api_key_prefix } = await agent.getAccount();
console.log(`the budget of ${api_key_prefix}:`, await agent.getBudget());
// The contract does not show what is in this one.
console.log(await agent.listTransactions());
await agent.close();
