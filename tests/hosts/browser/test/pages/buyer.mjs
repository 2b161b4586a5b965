// Buys one session for each of its intents, and stands still where it is told to, for the page to be ended there.
// `point` is `put:2`, `was put:2`, `send:1`, `sent:1`, `read:1`, `was read:1`.
import { AgentClient, IndexedDBStore } from "./hopline/web.mjs";

/** The sessions by their intents; an intent that another client has is waited for, or `busy` where `once`. */
export async function buy(client, wanted, intents, { point = "", once = false } = {}) {
  const [name, at] = point.split(":");
  const seen = {};
  const here = (place) => {
    seen[place] = (seen[place] ?? 0) + 1;
    if (place !== name || seen[place] !== Number(at)) return undefined;
    globalThis.reached = true;
    return new Promise(() => {});
  };
  const store = new IndexedDBStore("records");
  const put = store.put.bind(store);
  store.put = async (...given) => {
    await here("put");
    const told = await put(...given);
    await here("was put");
    return told;
  };
  // A page has one client, however often it buys.
  const agent = (globalThis.agent ??= new AgentClient({
    ...client,
    store,
    fetch: async (url, init) => {
      await here(init.method === "POST" ? "send" : "read");
      const answer = await fetch(url, init);
      const body = await answer.arrayBuffer();
      await here(init.method === "POST" ? "sent" : "was read");
      return new Response(body, { status: answer.status, headers: answer.headers });
    },
  }));
  const began = performance.now();
  const one = async (intent) => {
    for (;;) {
      try {
        return (await agent.openSession(wanted, { intent })).session_id;
      } catch (error) {
        if (error.kind === "busy" && once) return "busy";
        if (!["busy", "in_doubt", "unavailable"].includes(error.kind) || performance.now() - began > 60_000) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  return Promise.all(intents.map(one));
}
