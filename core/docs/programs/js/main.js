import { AgentClient, IndexedDBStore } from "hopline";

// Your server writes who has logged in into the page.
const { account } = document.documentElement.dataset;
const agent = new AgentClient({ baseUrl: "/api/v1", account, store: new IndexedDBStore("hopline-records") });
const [shown] = document.getElementsByTagName("output");
const [button] = document.getElementsByTagName("button");
agent.getBalance().then(
  (/** @type {any} */ { balance }) => (shown.textContent = `${balance} USD`),
  ({ message }) => (shown.textContent = message),
).finally(() => agent.close());

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
worker.addEventListener("message", ({ data }) => (shown.textContent = data.session_id ?? data.message));
// One session a day, however often somebody clicks. For one session an order, name the order instead.
const intent = () => `prices-${new Date().toISOString().slice(0, 10)}`;
button.onclick = () => worker.postMessage({ account, intent: intent() });
