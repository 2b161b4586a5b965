// The relay in the servers that people have: Express, Hono, and workerd, which Cloudflare's Workers run in.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { AgentClient, FolderStore } from "hopline";
import { relay, toNode } from "hopline/backend";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";
import { worker } from "./lib/workerd.mjs";

const ALLOW = ["listProducts", "createSession", "getSession", "terminateSession"];
const authorize = () => ({ account: "ann" });

/** Buys through a relay, the first answer being lost, and ends the session. */
async function buys(t, service, origin) {
  await service.fault({ kind: "drop_after" }, "create_session");
  const asPage = (url, init) => {
    const headers = new Headers(init.headers);
    headers.set("origin", origin);
    return fetch(url, { ...init, headers });
  };
  const agent = new AgentClient({ baseUrl: `${origin}/api/v1`, fetch: asPage, store: new FolderStore(folder(t)) });
  t.after(() => agent.close());
  const session = await agent.openSession(WANTED, { intent: "prices" });
  await session.terminate();
  const { sessions } = await service.state();
  assert.equal(sessions.length, 1);
  const foreign = await fetch(`${origin}/api/v1/sessions`, { method: "POST", body: "{}", headers: { origin: "https://evil.example" } });
  assert.deepEqual([foreign.status, (await foreign.json()).error.code], [403, "AUTH_INSUFFICIENT_PERMISSION"]);
  const other = await fetch(`${origin}/api/v1/billing/balance`);
  assert.deepEqual([other.status, (await other.json()).error.code], [404, "ROUTE_NOT_FOUND"]);
}

async function listening(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${server.address().port}`;
}

const handleOf = (service) => relay({ baseUrl: service.agent_url, apiKey: service.api_key, mount: "/api/v1", allow: ALLOW, authorize });

test("in Express, below a mount and beside its own parsers", async (t) => {
  const service = await sandbox(t);
  const express = tool("express");
  const app = express();
  app.use("/api/v1", toNode(handleOf(service)));
  app.use(express.json());
  await buys(t, service, await listening(t, createServer(app)));
});

test("in Hono", async (t) => {
  const service = await sandbox(t);
  const { Hono } = tool("hono");
  const { getRequestListener } = tool("@hono/node-server");
  const handle = handleOf(service);
  const app = new Hono();
  app.all("/api/v1/*", (c) => handle(c.req.raw));
  await buys(t, service, await listening(t, createServer(getRequestListener(app.fetch))));
});

test("in workerd, bundled, with the key in its environment", async (t) => {
  const service = await sandbox(t);
  const place = folder(t);
  const main = `import { relay } from ${JSON.stringify(fileURLToPath(import.meta.resolve("hopline/backend")))};
    let handle;
    export default {
      fetch(request, { HOPLINE_BASE_URL: baseUrl, HOPLINE_API_KEY: apiKey }) {
        handle ??= relay({ baseUrl, apiKey, mount: "/api/v1", allow: ${JSON.stringify(ALLOW)}, authorize: () => ({ account: "ann" }) });
        return handle(request);
      },
    };`;
  writeFileSync(join(place, "main.mjs"), main);
  await tool("esbuild").build({ entryPoints: [join(place, "main.mjs")], bundle: true, format: "esm", conditions: ["workerd"], outfile: join(place, "worker.js"), logLevel: "error" });
  const url = await worker(t, place, ["worker.js"], { HOPLINE_BASE_URL: service.agent_url, HOPLINE_API_KEY: service.api_key });
  await buys(t, service, url);
});
