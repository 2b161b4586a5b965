// A purchase over a `fetch` that repeats by itself, and was put in the place of Node's before the package was loaded.
const own = globalThis.fetch;
globalThis.fetch = async (url, init) => {
  try {
    return await own(url, init);
  } catch {
    return own(url, init);
  }
};
const { AgentClient } = await import("hopline");
const agent = new AgentClient({ baseUrl: process.env.HOPLINE_BASE_URL, apiKey: "key", retry: { attempts: 1 } });
const { kind, effect } = await agent.createSession({ session_type: "dynamic", product_no: "d" }).catch((error) => error);
console.log(JSON.stringify([kind, effect]));
await agent.close();
