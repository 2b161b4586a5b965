import { AgentClient, FolderStore, HoplineError, OpenSession, sessionEvent } from "hopline";

// The intent is your own name for this purchase. With the date in it, tomorrow's run buys a session of its own.
const intent = `prices-${new Date().toISOString().slice(0, 10)}`;
// All clients of this folder together buy for no more than 20 USD in a UTC day.
const agent = new AgentClient({ dailyCapUsd: 20, store: new FolderStore("hopline-records") });
try {
  let open = await agent.resumeIntent(intent);
  if (open === undefined) {
    const offered = [];
    for await (const product of agent.walkProducts({ type: "dynamic" })) if (product.available) offered.push(product);
    const [cheapest] = offered.sort((one, other) => one.price - other.price);
    const { product_no, quantity, unit, unit_price, total, currency } = await agent.quote(cheapest, "0.5");
    console.log(`${quantity} ${unit} of ${product_no} cost ${total} ${currency}`);
    open = await agent.openSession(
      { session_type: "dynamic", product_no, quantity, protocol: "http" },
      { intent, maxUnitPrice: unit_price },
    );
  }
  if (!(open instanceof OpenSession)) throw new Error(`${intent} stands for something else`);
  if (open.phase !== "ready") throw new Error(`${open.session_id} is ${open.session.status}; start this again`);

  const { session_id } = open;
  const { host, port } = open.proxy; // open.proxy.undici(), .playwright(), .curl, .url
  console.log(`${session_id} is a proxy at ${host}:${port}`);
  // Tell Hopline what your requests meet, and do as it advises. A rotation changes the exit and may change the login: use `open.proxy` anew.
  const advice = await open.observe(403); // or a response, an error, a word such as "captcha"
  if (advice?.verdict === "rotate") await open.rotate({ reason: advice.reason });
  await agent.reportSessionEvent({ session_id, event: sessionEvent({ status: 200, latency_ms: 180, target: "shop.example" }) });
  console.log("its health:", await agent.getSessionHealth({ session_id }));

  await open.terminate();
} catch (error) {
  if (!(error instanceof HoplineError)) throw error;
  console.error(error.message); // a sentence: what happened, whether it took effect, what to do next
  process.exitCode = 1;
} finally {
  await agent.close();
}
