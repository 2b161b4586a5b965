// The HTTP clients that people fetch pages with, each as it goes through the proxy of a session.
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

import { tool } from "./tools.mjs";

/** `undici` 8 needs a newer Node than the package does. */
export const HAS_UNDICI8 = Number(process.versions.node.split(".")[0]) >= 23;

const undici = (name) => async (url, proxy, ms) => {
  const { ProxyAgent, fetch } = tool(name);
  const dispatcher = new ProxyAgent({ ...proxy.undici(), connectTimeout: 5000 });
  try {
    const answer = await fetch(url, { dispatcher, signal: AbortSignal.timeout(ms) });
    await answer.text();
    return answer;
  } finally {
    dispatcher.destroy();
  }
};

function agents(proxy) {
  const { HttpsProxyAgent } = tool("https-proxy-agent");
  const agent = new HttpsProxyAgent(proxy.url);
  return { httpAgent: agent, httpsAgent: agent };
}

/** By client: how it sends a request through an HTTP proxy, with so many milliseconds to answer in. */
export const CLIENTS = {
  "undici 6": undici("undici6"),
  "undici 7": undici("undici"),
  ...(HAS_UNDICI8 && { "undici 8": undici("undici8") }),
  // The timeouts of these two begin once there is a connection; a signal ends them before.
  axios: (url, proxy, ms) => tool("axios").get(url, { ...agents(proxy), proxy: false, timeout: ms, signal: AbortSignal.timeout(3 * ms) }),
  async got(url, proxy, ms) {
    const { default: got } = await import(pathToFileURL(join(dirname(tool.resolve("undici/package.json")), "../got/dist/source/index.js")));
    const { httpAgent: http, httpsAgent: https } = agents(proxy);
    return got(url, { agent: { http, https }, timeout: { request: ms }, retry: { limit: 0 }, signal: AbortSignal.timeout(3 * ms) });
  },
};
