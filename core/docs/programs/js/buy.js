import { AgentClient, IndexedDBStore, cheapest } from "hopline";

const { account } = document.documentElement.dataset; // who has logged in, as your server wrote it into the page
const agent = new AgentClient({ baseUrl: "/api/v1", account, store: new IndexedDBStore("hopline-records"), dailyCapUsd: 20 });
const product = cheapest({ type: "dynamic", maxUnitPrice: 5 });
const [[shown], [buy, end]] = [document.getElementsByTagName("output"), document.getElementsByTagName("button")];
buy.onclick = async () => {
  const session = await agent.openSession({ quantity: "0.5" }, { product, intent: "prices", ifEnded: "buy" });
  shown.textContent = `${session.proxy.host}:${session.proxy.port} for ${session.charged_usd} USD`;
  end.onclick = () => session.terminate();
};
