// The same package for CommonJS.
import hopline = require("hopline");

const agent = new hopline.AgentClient({ apiKey: "key", baseUrl: "https://api.example/v1" });

export async function balance(): Promise<number> {
  try {
    return (await agent.getBalance<{ balance: number }>()).balance;
  } catch (error) {
    if (error instanceof hopline.HoplineError && error.kind === "unavailable") return 0;
    throw error;
  } finally {
    await agent.close();
  }
}
