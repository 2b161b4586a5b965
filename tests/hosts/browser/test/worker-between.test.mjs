// Between a page and its requests: a service worker that caches and repeats, and a network that goes away.
import assert from "node:assert/strict";
import { test } from "node:test";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { stage } from "./lib/chromium.mjs";
import { policy } from "./lib/site.mjs";

/** As people write them: reads come from the cache first, and a write that failed is sent once more. */
const WORKER = `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
async function cached(request) {
  const cache = await caches.open("reads");
  const known = await cache.match(request);
  if (known) return known;
  const answer = await fetch(request);
  await cache.put(request, answer.clone());
  return answer;
}
async function twice(request) {
  const again = request.clone();
  const answer = await fetch(request).catch(() => undefined);
  return answer?.status < 500 ? answer : fetch(again);
}
self.addEventListener("fetch", (event) => {
  if (!event.request.url.includes("/v1/")) return;
  event.respondWith(event.request.method === "GET" ? cached(event.request) : twice(event.request));
});
`;

test("behind a service worker that caches and repeats, a purchase is made once and a wait has an end", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "600000");
  const { origin } = new URL(service.agent_url);
  const headers = { "content-type": "text/javascript", "content-security-policy": policy(origin) };
  const { page } = await stage(t, service, { answers: { "/sw.js": (_, response) => response.writeHead(200, headers).end(WORKER) } });
  await page.evaluate(async () => {
    await navigator.serviceWorker.register("/sw.js");
    await navigator.serviceWorker.ready;
    while (!navigator.serviceWorker.controller) await new Promise((resolve) => setTimeout(resolve, 5));
    globalThis.agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
  });
  await service.fault({ kind: "drop_after" }, "create_session");
  const open = (deadlineMs) => page.evaluate(async ([wanted, deadlineMs]) => {
    const { session_id, phase } = await agent.openSession(wanted, { intent: "job-17", deadlineMs, allowPending: true });
    return [session_id, phase];
  }, [WANTED, deadlineMs]);
  const [session_id, phase] = await open(3000);
  assert.deepEqual([/^ses_/.test(session_id), phase], [true, "pending"]);
  // The worker goes on saying what was true once.
  await service.control("clock", { advance_ms: 600_000 });
  assert.deepEqual(await open(3000), [session_id, "pending"]);
  await page.evaluate(async () => {
    for (const worker of await navigator.serviceWorker.getRegistrations()) await worker.unregister();
    await agent.close();
  });
  await page.reload();
  await page.waitForFunction(() => "hopline" in globalThis);
  await page.evaluate((client) => {
    globalThis.agent = new hopline.AgentClient({ ...client, store: new hopline.IndexedDBStore("records") });
  }, { apiKey: service.api_key, baseUrl: service.agent_url });
  assert.deepEqual(await open(60_000), [session_id, "ready"]);
  assert.equal((await service.state()).charges.length, 1);
});

test("a page whose network goes away in the middle of a purchase goes on with it when it is back", async (t) => {
  const service = await sandbox(t, "--provisioning-ms", "1000");
  const { page, context } = await stage(t, service);
  await service.fault({ kind: "delay", ms: 3000 }, "create_session");
  await page.evaluate((wanted) => {
    const agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
    globalThis.opening = agent.openSession(wanted, { intent: "job-17" }).then(({ session_id, phase }) => [session_id, phase]);
    globalThis.opening.catch(() => {});
  }, WANTED);
  while ((await service.requests()).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await context.setOffline(true);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await context.setOffline(false);
  const [session_id, phase] = await page.evaluate(() => opening);
  assert.deepEqual([/^ses_/.test(session_id), phase], [true, "ready"]);
  assert.equal((await service.state()).charges.length, 1);
});
