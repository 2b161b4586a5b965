// Canary secrets: nowhere but where they are asked for by name.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { AgentClient, FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";

/** Every way in which a value is shown or copied. */
function shown(value) {
  const copy = typeof value === "object" && !(value instanceof AgentClient) ? [{ ...value }] : [];
  return [inspect(value, { depth: 20 }), JSON.stringify(value), String(value), `${value?.stack}`, inspect(copy, { depth: 20 })].join("\n");
}

test("a client, its sessions, events, errors and records show no secret", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const agent = service.agent({ store: new FolderStore(path) });
  const events = agent.events();
  await service.fault({ kind: "drop_after" }, "create_session");
  const open = await agent.openSession(WANTED, { intent: "job-17", credentials: true, headers: { "x-own": "canary-header" } });
  const { username, password, full_url } = open.session.proxy;
  const rotated = await agent.rotateSession({ session_id: open.session_id, include_credentials: true });
  await service.fault({ kind: "drop_after" }, "create_session");
  const doubt = await agent.openSession(WANTED, { attempts: 1 }).catch((error) => error);
  await service.fault({ kind: "html", status: 502 }, "get_session");
  const page = await agent.getSession({ session_id: open.session_id }, { attempts: 1 }).catch((error) => error);
  const refused = await agent.createSession({ ...WANTED, product_no: "no-such" }).catch((error) => error);
  const things = [agent, open, open.session, open.session.proxy, rotated, doubt, page, refused, await agent.saved(), await agent.restored()];
  await agent.close();
  for await (const event of events) things.push(event);
  const kept = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  things.push(...kept.map((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8")));
  assert.ok(things.length > 14);
  const secrets = { key: service.api_key, username, password, full_url, rotated: rotated.proxy.password, header: "canary-header" };
  for (const [name, secret] of Object.entries(secrets)) {
    assert.ok(secret?.length > 3, name);
    for (const thing of things) assert.ok(!shown(thing).includes(secret), `${name} shows in ${shown(thing)}`);
  }
  assert.ok(structuredClone(open.session).proxy.password === undefined);
});

test("what a gateway repeats of a request shows only when it is asked for", async (t) => {
  const fetch = async (url, { headers }) => new Response(`<p>${JSON.stringify(headers)}</p>`, { status: 502, headers: { "content-type": "text/html" } });
  const agent = new AgentClient({ apiKey: "canary-key", baseUrl: "http://127.0.0.1:9/v1", fetch });
  const error = await agent.createSession(WANTED, { attempts: 2 }).catch((error) => error);
  assert.ok(!shown(error).includes("canary"), shown(error));
  await agent.close();
});

test("a transport's error can't carry the key along", async () => {
  const fetch = async () => {
    throw Object.assign(new Error("sent x-api-key: canary-key"), { config: { headers: { "x-api-key": "canary-key" } } });
  };
  const agent = new AgentClient({ apiKey: "canary-key", baseUrl: "http://127.0.0.1:9/v1", fetch });
  const error = await agent.getBalance({}, { attempts: 1 }).catch((error) => error);
  assert.match(error.cause.message, /sent x-api-key: \[redacted\]/);
  assert.ok(!shown(error).includes("canary"), shown(error));
  await agent.close();
});
