// Canary secrets: nowhere but where they are asked for by name.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { AgentClient, FolderStore, ProxySettings } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";
import { shown } from "./lib/shown.mjs";

/** The texts that secrets hide. */
const texts = (secrets) => Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret?.reveal?.()]));

test("a client, its sessions, events, errors and records show no secret", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const agent = service.agent({ store: new FolderStore(path) });
  const events = agent.events();
  await service.fault({ kind: "drop_after" }, "create_session");
  const open = await agent.openSession(WANTED, { intent: "job-17", credentials: true, headers: { "x-own": "canary-header" } });
  const { username, password, full_url } = texts(open.session.proxy);
  const rotated = await agent.rotateSession({ session_id: open.session_id, include_credentials: true });
  await service.fault({ kind: "drop_after" }, "create_session");
  const doubt = await agent.openSession(WANTED, { attempts: 1 }).catch((error) => error);
  await service.fault({ kind: "html", status: 502 }, "get_session");
  const page = await agent.getSession({ session_id: open.session_id }, { attempts: 1 }).catch((error) => error);
  const refused = await agent.createSession({ ...WANTED, product_no: "no-such" }).catch((error) => error);
  const things = [agent, open, open.session, open.session.proxy, rotated, doubt, page, refused, await agent.saved()];
  await agent.close();
  for await (const event of events) things.push(event);
  const kept = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  things.push(...kept.map((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8")));
  assert.ok(things.length > 14);
  const secrets = { key: service.api_key, username, password, full_url, rotated: rotated.proxy.password.reveal(), header: "canary-header" };
  for (const [name, secret] of Object.entries(secrets)) {
    assert.ok(secret?.length > 3, name);
    for (const thing of things) assert.ok(!shown(thing).includes(secret), `${name} shows in ${shown(thing)}`);
  }
});

test("the rest of the account, its requests and its walks show no secret either", async (t) => {
  const service = await sandbox(t);
  const path = folder();
  const agent = service.agent({ store: new FolderStore(path), dailyCapUsd: 50 });
  const events = agent.events();
  const email = "canary-mail@example.com";
  const body = { note: "canary-body", api_key: "canary-field" };
  const caught = (promise) => promise.catch((error) => error);
  const opened = await agent.registerAccount({ name: "Ann", contact_email: email });
  const things = [opened, await agent.requestApiKey({ email }), await agent.getAccount(), await agent.getBudget()];
  for (const operation of ["register_account", "request_api_key", "report_session_event", "update_budget", "get_balance"]) await service.fault({ kind: "drop_after" }, operation);
  things.push(await caught(agent.registerAccount({ name: "Ann", contact_email: email }, { intent: "account" })));
  things.push(await caught(agent.requestApiKey({ email }, { attempts: 1, headers: { "x-own": "canary-header" } })));
  things.push(await caught(agent.requestApiKey({ email: "canary-no-address" })));
  const open = await agent.openSession({ ...WANTED, protocol: "http" }, { credentials: true, maxUnitPrice: 4 });
  const { session_id } = open;
  things.push(open, await caught(agent.reportSessionEvent({ session_id, event: body })), await caught(agent.reportSessionEvent({ session_id, event: ["canary-event"] })));
  things.push(await caught(agent.request("PUT", "/account/budget", { body })), await caught(agent.request("POST", "/nowhere", { body, query: { q: "canary-query" } })));
  things.push(await caught(agent.request("PUT", "/account/budget", { body, safety: "keyed" }, { intent: "own", idempotencyKey: "key-1", attempts: 1 })));
  things.push(await agent.getBalance({}, { until: { at: "/balance", atLeast: 1 }, headers: { "x-own": "canary-header" } }));
  const walk = agent.walkProducts({ limit: 1 }, { headers: { "x-own": "canary-header" } });
  for await (const product of walk) if (things.push(product, walk.position)) break;
  const settings = new ProxySettings(open.session.proxy);
  things.push(walk, walk.pages(), settings, await agent.saved(), agent);
  await agent.close();
  for await (const event of events) things.push(event);
  const kept = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  things.push(...kept.map((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8")));
  assert.ok(things.length > 22, `${things.length}`);
  const { username, password, full_url } = texts(open.session.proxy);
  const { mails } = await service.control("mailbox");
  const secrets = { key: service.api_key, canary: "canary", ...texts({ api_key: opened.api_key, api_secret: opened.api_secret }), mailed: mails[0].api_key, username, password, full_url };
  for (const [name, secret] of Object.entries(secrets)) {
    assert.ok(secret?.length > 3, name);
    for (const thing of things) assert.ok(!shown(thing).includes(secret), `${name} shows in ${shown(thing)}`);
  }
});

test("what a gateway repeats of a request shows only when it is asked for", async (t) => {
  const fetch = async (url, { headers }) => new Response(`<p>${JSON.stringify(headers)}</p>`, { status: 502, headers: { "content-type": "text/html" } });
  const agent = new AgentClient({ apiKey: "canary-key", baseUrl: "http://127.0.0.1:9/v1", fetch });
  const error = await agent.createSession(WANTED, { attempts: 2 }).catch((error) => error);
  assert.ok(!shown(error).includes("canary"), shown(error));
  await agent.close();
});

test("a log of an error has its causes, without what a server wrote", async (t) => {
  const fetch = async () => {
    throw Object.assign(new TypeError("fetch failed"), { cause: Object.assign(new Error("canary-key was reset"), { code: "ECONNRESET" }) });
  };
  const agent = new AgentClient({ apiKey: "canary-key", baseUrl: "http://127.0.0.1:9/v1", fetch });
  t.after(() => agent.close());
  const error = await agent.createSession(WANTED, { attempts: 1 }).catch((error) => error);
  const told = JSON.parse(JSON.stringify(error));
  assert.equal(told.message, error.message);
  assert.match(JSON.stringify(told.cause), /ECONNRESET: \[redacted\] was reset/);
  assert.ok(!JSON.stringify(told).includes("canary"));
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
