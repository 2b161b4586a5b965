// Purchases while the program can open no file and no connection any more.
import { openSync } from "node:fs";

import { AgentClient } from "hopline";

const buy = async (baseUrl) => {
  const agent = new AgentClient({ baseUrl, apiKey: "key", retry: { attempts: 1 } });
  const { kind, effect } = await agent.createSession({ session_type: "dynamic", product_no: "d" }).catch((error) => error);
  await agent.close();
  return [kind, effect];
};

// The files that a first request loads.
await buy("https://127.0.0.1:5999");
const files = [];
try {
  for (;;) files.push(openSync("/dev/null"));
} catch ({ code }) {
  if (code !== "EMFILE") throw new Error(code);
}
const told = [await buy("https://hopline.invalid"), await buy("https://127.0.0.1:5999")];
console.log(JSON.stringify(told));
process.exit();
