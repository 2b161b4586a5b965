// Canary secrets: nowhere but where they are asked for by name.
import assert from "node:assert/strict";
import { test } from "node:test";

import { WANTED, sandbox } from "../../node/test/lib/sandbox.mjs";
import { stage } from "./lib/chromium.mjs";

test("a client, its sessions, events, errors, clones and records show no secret", async (t) => {
  const service = await sandbox(t);
  const { page } = await stage(t, service);
  await page.exposeFunction("fault", (fault, operation) => service.fault(fault, operation));
  const told = await page.evaluate(async (wanted) => {
    const agent = new hopline.AgentClient({ ...service, store: new hopline.IndexedDBStore("records") });
    const events = agent.events();
    await fault({ kind: "html", status: 502, after: true }, "create_session");
    const open = await agent.openSession(wanted, { intent: "job-17", credentials: true, headers: { "x-own": "canary-header" } });
    const { username, password, full_url } = open.session.proxy;
    const rotated = await agent.rotateSession({ session_id: open.session_id, include_credentials: true });
    await fault({ kind: "html", status: 502, after: true }, "create_session");
    const doubt = await agent.openSession(wanted, { attempts: 1 }).catch((error) => error);
    const refused = await agent.createSession({ ...wanted, product_no: "no-such" }).catch((error) => error);
    const email = "canary-mail@example.com";
    const opened = await agent.registerAccount({ name: "Ann", contact_email: email });
    await fault({ kind: "html", status: 502, after: true }, "request_api_key");
    const asked = await agent.requestApiKey({ email }, { attempts: 1 }).catch((error) => error);
    const body = { note: "canary-body" };
    await fault({ kind: "html", status: 502, after: true }, "report_session_event");
    const reported = await agent.reportSessionEvent({ session_id: open.session_id, event: body }).catch((error) => error);
    const own = await agent.request("POST", "/nowhere", { body, query: { q: "canary-query" } }).catch((error) => error);
    const settings = new hopline.ProxySettings({ ...open.session.proxy, protocol: "http", username, password });
    const saved = await agent.saved();
    const database = await new Promise((resolve) => (indexedDB.open("records").onsuccess = ({ target }) => resolve(target.result)));
    const all = (store, what) => new Promise((resolve) => (database.transaction(store).objectStore(store)[what]().onsuccess = ({ target }) => resolve(target.result)));
    const kept = [];
    for (const store of database.objectStoreNames) kept.push(await all(store, "getAll"), await all(store, "getAllKeys"));
    database.close();
    await agent.close();
    const things = [open, open.session, open.session.proxy, password, hopline.meta(rotated), rotated, rotated.proxy, doubt, refused, opened, asked, reported, own, settings, saved, kept];
    for await (const event of events) things.push(event);
    console.log(agent);
    const shown = [];
    for (const thing of things) {
      console.log(thing, { ...thing });
      console.log(String(thing), thing?.stack);
      shown.push(JSON.stringify(thing), JSON.stringify({ ...thing }));
      if (thing !== open) shown.push(JSON.stringify(structuredClone(thing)));
    }
    const hidden = { username, password, full_url, rotated: rotated.proxy.password, account: opened.api_key, secret: opened.api_secret };
    const texts = Object.entries(hidden).map(([name, secret]) => [name, secret.reveal()]);
    return { shown, records: kept.flat().length, secrets: { key: service.apiKey, canary: "canary", ...Object.fromEntries(texts) } };
  }, WANTED);
  const everything = [...told.shown, ...page.told];
  assert.ok(told.records >= 8 && told.shown.length > 20 && page.told.length > 20);
  for (const [name, secret] of Object.entries(told.secrets)) {
    assert.ok(secret?.length > 3, name);
    assert.equal(everything.find((text) => text.includes(secret)), undefined, name);
  }
});
