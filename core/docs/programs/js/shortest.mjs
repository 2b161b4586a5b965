import { AgentClient, FolderStore, cheapest } from "hopline";
import { ProxyAgent, fetch } from "undici";

const url = new URL(process.argv[2]);
const agent = new AgentClient({ store: new FolderStore("hopline-records"), dailyCapUsd: 20 });
const product = cheapest({ type: "dynamic", maxUnitPrice: 5 });
const session = await agent.openSession({ quantity: "0.5" }, { product, intent: "prices", ifEnded: "buy", useWith: "undici" });
const page = await fetch(url, { dispatcher: new ProxyAgent(session.proxy.undici()) });
console.log(page.status, "for", session.charged_usd, "USD");
await session.terminate();
await agent.close();
