// Canary secrets of the reseller API: nowhere but where they are asked for by name.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { FolderStore, ProxySettings, ResellerClient } from "hopline";

import { folder, shop } from "./lib/sandbox.mjs";
import { shown } from "./lib/shown.mjs";

test("a reseller's login, its sub-users, orders, proxies, errors, events and records show no secret", async (t) => {
  const { service, wanted } = await shop(t, "--provisioning-ms", "100");
  const path = folder();
  const reseller = service.reseller({ store: new FolderStore(path) });
  const events = reseller.events();
  const caught = (promise) => promise.catch((error) => error);
  const user = { username: "bob", password: "canary-bob", email: "canary-bob@example.com", balance: 20 };
  const bob = await reseller.createUser(user, { intent: "bob" });
  const placed = await reseller.placeOrder(wanted, { intent: "job-17", headers: { "x-own": "canary-header" } });
  await reseller.createDynamicOrder({ poolId: "dynamic-us", trafficAmount: 1 }, { intent: "traffic" });
  const extracted = await reseller.extractDynamicProxies({ productNo: "dynamic-us", proxyType: 104 }, { intent: "extract" });
  const logged = await reseller.login({ username: service.username, password: service.password }, { intent: "login" });
  const listed = await reseller.listStaticOrders({ search: placed.order_no });
  const things = [reseller, bob, placed, extracted, logged, listed, await reseller.listSubUsers({ search: "bob" }), await reseller.waitOrder(placed.order_no)];
  for (const operation of ["create_user", "edit_sub_user_account", "login", "create_static_order", "extract_dynamic_proxies"]) await service.fault({ kind: "drop_after" }, operation);
  const doubts = [
    await caught(reseller.createUser({ ...user, username: "carol" })),
    await caught(reseller.editSubUserAccount({ user_id: bob.id, password: "canary-other" })),
    await caught(reseller.placeOrder(wanted)),
    await caught(reseller.extractDynamicProxies({ productNo: "dynamic-us", proxyType: 104 })),
  ];
  assert.ok(doubts.every(({ kind }) => kind === "in_doubt"), inspect(doubts));
  things.push(...doubts, await caught(reseller.login({ username: "canary-user", password: "canary-wrong" }, { attempts: 1 })));
  for (const { record } of doubts.slice(0, 3)) things.push(await reseller.reconcile(record));
  things.push(await caught(reseller.createUser({ ...user, password: "canary" + "y".repeat(60) })), await caught(reseller.createUser({ ...user, email: "canary-no-address" })));
  things.push(await caught(reseller.request("POST", "/nowhere", { body: { note: "canary-body" }, query: { q: "canary-query" } })));
  await service.fault({ kind: "html", status: 502 }, "list_sub_users");
  things.push(await caught(reseller.listSubUsers({ search: "canary-search" }, { attempts: 1 })));
  const wrong = service.reseller({ password: "canary-wrong" });
  things.push(wrong, await caught(wrong.getDashboard()));
  const walk = reseller.walkStaticOrders({ search: placed.order_no });
  for await (const order of walk) things.push(order, walk.position);
  const [{ ip, http_port, username, password }] = placed.order.items[0].instances;
  const settings = new ProxySettings({ host: ip, port: http_port, protocol: "http", username, password });
  const { token } = reseller;
  things.push(settings, settings.undici(), await reseller.saved(), structuredClone(placed), structuredClone(listed));
  await reseller.close();
  for await (const event of events) things.push(event);
  const kept = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  things.push(...kept.map((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8")));
  assert.ok(things.length > 40, `${things.length}`);
  const hidden = { logged: logged.token, username, password, extracted: extracted.items[0].password, name: extracted.items[0].username };
  const texts = Object.entries(hidden).map(([name, secret]) => [name, secret.reveal()]);
  const secrets = { canary: "canary", own: service.password, token, ...Object.fromEntries(texts) };
  for (const [name, secret] of Object.entries(secrets)) {
    assert.ok(secret?.length > 3, name);
    for (const thing of things) assert.ok(!shown(thing).includes(secret), `${name} shows in ${shown(thing)}`);
  }
  assert.deepEqual([bob.username, bob.email.reveal()], ["bob", user.email], "a name is no secret where the contract shows it");
});

test("a transport's error can't carry a part of a body or of a token along", async (t) => {
  const { service, reseller } = await shop(t);
  const { token } = reseller;
  const user = { username: "canary-user", password: "canary-\"password\"-zyxwvutsrq", email: "canary-zyxwvutsrq@example.com" };
  const quote = {
    whole: ({ body }) => body,
    cut: ({ body }) => body.slice(0, body.indexOf("password") + 17),
    "cut in the middle of a secret": ({ body }) => [body.slice(0, body.indexOf("yxwvutsrq") + 5), body.slice(body.indexOf("anary-zyx"))].join(" … "),
    "in an address": () => `?password=${encodeURIComponent(user.password)} ${encodeURIComponent(user.email)}`,
    "without a name": () => `${user.password} ${user.email}`,
    "a token": () => `${token.slice(0, -3)} … ${token.slice(3)}`,
  };
  for (const [name, words] of Object.entries(quote)) {
    const fetch = async (_, { body }) => {
      throw new Error(`could not send ${words({ body: new TextDecoder().decode(body) })}`);
    };
    const error = await service.reseller({ token, fetch }).createUser(user, { attempts: 1 }).catch((error) => error);
    const text = shown(error) + shown(error.cause);
    assert.match(text, /could not send .*redacted/s, name);
    for (const secret of ["anary", "zyxwv", "vutsrq", token.slice(3, 15), token.slice(-15, -3)]) assert.ok(!text.includes(secret), `${name}: ${secret} in ${text}`);
  }
});

test("a transport's error can't carry a login or a token along", async (t) => {
  const { service, reseller } = await shop(t);
  const { token } = reseller;
  const failing = (more) =>
    service.reseller({
      fetch: async (url, { headers, body }) => {
        throw new Error(`sent ${JSON.stringify(headers)} ${body && new TextDecoder().decode(body)}`);
      },
      ...more,
    });
  for (const more of [{ username: "canary-user", password: "canary-password" }, { token }]) {
    const error = await failing(more).getDashboard({}, { attempts: 1, headers: { "x-own": "canary-header" } }).catch((error) => error);
    const text = shown(error) + shown(error.cause);
    assert.match(text, /redacted/);
    for (const secret of [service.password, token, "canary"]) assert.ok(!text.includes(secret), text);
  }
});
