// A purchase that is given up in each phase of it. Nothing here is of one host: a page runs it, too.

/** Where it is given up, whether something is charged by then, and what the error may say of the effect. */
export const PHASES = {
  "before it begins": { charged: 0, effects: ["none"] },
  "as it begins": { charged: 0, effects: ["none"] },
  "while it is saved": { charged: 0, effects: ["none"] },
  "when it is saved": { charged: 0, effects: ["none"] },
  "as the request goes out": { charged: 0, effects: ["unknown"] },
  "when the service has done it": { charged: 1, effects: ["unknown"] },
  "while the answer is saved": { charged: 1, effects: ["done", "unknown"] },
  "as it is polled": { charged: 1, effects: ["done"] },
  "when it was polled": { charged: 1, effects: ["done"] },
  "as its credentials are read": { charged: 1, effects: ["done"] },
};

/** Begins a purchase, gives it up when it is in that phase, and says what it ended with. The client is left as it is. */
export async function giveUp({ AgentClient }, client, store, phase, wanted, options) {
  const given = new AbortController();
  const counts = {};
  const at = (name) => {
    counts[name] = (counts[name] ?? 0) + 1;
    if (name === phase && counts[name] === 1) given.abort(new Error("given up"));
  };
  const put = store.put.bind(store);
  store.put = async (...given) => {
    at(counts["when the service has done it"] ? "while the answer is saved" : "while it is saved");
    const told = await put(...given);
    at("when it is saved");
    return told;
  };
  const agent = new AgentClient({
    ...client,
    store,
    fetch: async (url, init) => {
      const buys = init.method === "POST";
      at(buys ? "as the request goes out" : url.includes("credentials") ? "as its credentials are read" : "as it is polled");
      // A call that is given up here was never sent; the client can't know. A request that is sent arrives, whatever is given up later.
      init.signal.throwIfAborted();
      const answer = await fetch(url, { ...init, signal: undefined });
      const body = await answer.arrayBuffer();
      at(buys ? "when the service has done it" : "when it was polled");
      init.signal.throwIfAborted();
      return new Response(body, { status: answer.status, headers: answer.headers });
    },
  });
  at("before it begins");
  const opening = agent.openSession(wanted, { ...options, credentials: true, signal: given.signal });
  at("as it begins");
  const ended = await opening.then((open) => ({ kind: open.phase }), (error) => error);
  const { kind, effect, session_id, record } = ended;
  return { kind, effect, session_id, record, message: ended.message, reason: ended.cause?.message };
}
