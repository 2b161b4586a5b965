// Answers and sessions in the libraries that keep people's state: what is shown is what came last, and nothing throws.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

import { ProxySettings } from "hopline";

import { WANTED, sandbox } from "./lib/sandbox.mjs";

// The package itself needs none of them; they are where the tools of these tests are.
const tool = createRequire(join(process.env.HOPLINE_VECTORS, "../hosts/node/package.json"));

test("TanStack Query shows the login that came last, whatever else stayed as it was", async (t) => {
  const { QueryClient, QueryObserver } = tool("@tanstack/query-core");
  const service = await sandbox(t);
  const agent = service.agent();
  const open = await agent.openSession(WANTED, { credentials: true });
  const client = new QueryClient();
  client.mount();
  t.after(() => client.unmount());
  const { session_id } = open;
  const queries = {
    one: () => agent.getSession({ session_id, include_credentials: true }),
    handle: async () => open,
    several: async () => [await agent.getSession({ session_id, include_credentials: true })],
  };
  const passwords = { one: (data) => data.proxy.password, handle: (data) => data.session.proxy.password, several: ([data]) => data.proxy.password };
  const observers = Object.entries(queries).map(([name, queryFn]) => [name, new QueryObserver(client, { queryKey: [name], queryFn })]);
  const stops = observers.map(([, observer]) => observer.subscribe(() => {}));
  t.after(() => stops.forEach((stop) => stop()));
  const shown = async () => {
    const all = await Promise.all(observers.map(async ([name, observer]) => passwords[name]((await observer.refetch({ throwOnError: true })).data)));
    assert.equal(new Set(all).size, 1, String(all.length));
    return all[0];
  };
  const before = await shown();
  assert.match(before, /./);
  await open.rotate();
  const after = await shown();
  assert.notEqual(after, before);
  assert.equal(after, open.session.proxy.password);
  assert.equal(client.getQueryData(["one"]).proxy.password, after);
});

test("TanStack Query keeps the exact text of an answer through a refetch, whatever changed", async (t) => {
  const { QueryClient, QueryObserver } = tool("@tanstack/query-core");
  const service = await sandbox(t);
  const agent = service.agent();
  const client = new QueryClient();
  client.mount();
  t.after(() => client.unmount());
  const observer = new QueryObserver(client, { queryKey: ["balance"], queryFn: () => agent.getBalance() });
  t.after(observer.subscribe(() => {}));
  const shown = async () => (await observer.refetch({ throwOnError: true })).data;
  const before = await shown();
  assert.equal(JSON.parse(before.raw).balance, before.balance);
  await agent.openSession(WANTED);
  const after = await shown();
  assert.notEqual(after.balance, before.balance);
  assert.equal(JSON.parse(after.raw).balance, after.balance);
  assert.match(after.request_id, /./);
});

test("Vue's reactive values and refs take clients, sessions, walks and settings", async (t) => {
  const { isReactive, reactive, ref } = tool("@vue/reactivity");
  const service = await sandbox(t);
  const agent = ref(service.agent());
  const state = reactive({ open: await agent.value.openSession({ ...WANTED, protocol: "http" }, { credentials: true }), answer: undefined });
  const before = state.open.session.proxy.password;
  state.answer = await state.open.rotate();
  assert.ok(isReactive(state.answer));
  assert.match(state.answer.proxy.password, /./);
  assert.notEqual(state.answer.proxy.password, before);
  assert.equal(state.answer.proxy.password, state.open.session.proxy.password);
  assert.match(ref(new ProxySettings(state.answer.proxy)).value.url, /^http:/);
  const items = [];
  for await (const item of ref(agent.value.walkProducts({ limit: 100 })).value) items.push(item);
  assert.ok(items.length > 0);
  assert.equal((await agent.value.saved()).length, 1);
  await state.open.terminate();
  assert.ok(ref(service.reseller()).value.token === undefined);
});

test("a copy by Immer or spread never shows the login of another answer", async (t) => {
  const { produce } = tool("immer");
  const service = await sandbox(t);
  const open = await service.agent().openSession(WANTED, { credentials: true });
  const first = open.session;
  const second = await open.rotate();
  const [old, current] = [first, second].map(({ proxy }) => proxy.password);
  assert.notEqual(old, current);
  const state = produce({ session: first }, (draft) => {
    draft.session = second;
    draft.session.seen = true;
  });
  assert.equal(state.session.proxy.password, current);
  const changed = produce(second, (draft) => {
    draft.proxy.host = "proxy.example";
  });
  assert.equal(changed.proxy.host, "proxy.example");
  assert.notEqual(changed.proxy.password, old);
  const copy = { ...first, ...second, proxy: { ...first.proxy, ...second.proxy } };
  assert.notEqual(copy.proxy.password, old);
  assert.equal(structuredClone(second).proxy.password, undefined);
});
