// Answers and sessions in the libraries that keep people's state: what is shown is what came last, and secrets stay secrets.
import assert from "node:assert/strict";
import { test } from "node:test";

import { AgentClient, OpenSession, ProxySettings, Secret, meta } from "hopline";

import { WANTED, sandbox } from "./lib/sandbox.mjs";
import { tool } from "./lib/tools.mjs";

/** A session with its login, and a way to read it. */
async function opened(t) {
  const service = await sandbox(t);
  const agent = service.agent();
  const open = await agent.openSession({ ...WANTED, protocol: "http" }, { credentials: true });
  const { session_id } = open;
  return { service, agent, open, read: () => agent.getSession({ session_id, include_credentials: true }) };
}

test("an answer is what the service wrote: plain objects, with nothing hidden and nothing added", async (t) => {
  const { agent, open, read } = await opened(t);
  const session = await read();
  const checked = (value) => {
    if (value === null || typeof value !== "object" || value instanceof Secret) return value instanceof Secret ? value.reveal() : value;
    assert.ok([Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value)));
    const own = Reflect.ownKeys(value).filter((name) => !(Array.isArray(value) && name === "length"));
    assert.deepEqual(own, Object.keys(value));
    const members = own.map((name) => [name, checked(value[name])]);
    return Array.isArray(value) ? members.map(([, member]) => member) : Object.fromEntries(members);
  };
  for (const answer of [session, open.session, await agent.listProducts(), await agent.getBalance()]) assert.deepEqual(checked(answer), JSON.parse(meta(answer).raw));
  assert.deepEqual([meta({ ...session }), meta(structuredClone(session)), meta(session.proxy), meta(7), meta(undefined)], Array(5).fill(undefined));
});

test("a secret shows its text to nobody but who asks, and the same text is the same object", async (t) => {
  const { open, read } = await opened(t);
  const [{ password, username }, again] = [open.session.proxy, (await read()).proxy];
  assert.ok(password === again.password && password !== username && password instanceof Secret && Object.isFrozen(password));
  assert.throws(() => new Secret(undefined), TypeError);
  assert.match(password.reveal(), /./);
  assert.equal(new Proxy(password, {}).reveal(), password.reveal());
  assert.deepEqual([String(password), `${password}`, JSON.stringify({ password })], ["[redacted]", "[redacted]", '{"password":"[redacted]"}']);
  assert.notDeepEqual(password, username, "whoever compares two of them sees that they are two");
  const { port1, port2 } = new MessageChannel();
  const sent = new Promise((resolve) => (port2.onmessage = ({ data }) => resolve(data)));
  port1.postMessage(open.session);
  for (const copy of [await sent, structuredClone(open.session)]) {
    assert.deepEqual([copy.session_id, copy.proxy.host, copy.proxy.password], [open.session_id, open.session.proxy.host, { serial: password.serial }]);
  }
  port1.close();
});

test("TanStack Query keeps what stayed as it was, and shows the login that came last", async (t) => {
  const { QueryClient, QueryObserver } = tool("@tanstack/query-core");
  const { open, read } = await opened(t);
  const client = new QueryClient();
  client.mount();
  t.after(() => client.unmount());
  const queries = { one: read, handle: async () => open, several: async () => [await read()] };
  const passwords = { one: (data) => data.proxy.password, handle: (data) => data.session.proxy.password, several: ([data]) => data.proxy.password };
  const observers = Object.entries(queries).map(([name, queryFn]) => [name, new QueryObserver(client, { queryKey: [name], queryFn })]);
  const stops = observers.map(([, observer]) => observer.subscribe(() => {}));
  t.after(() => stops.forEach((stop) => stop()));
  const fetched = async () => Object.fromEntries(await Promise.all(observers.map(async ([name, observer]) => [name, (await observer.refetch({ throwOnError: true })).data])));
  const shown = (all) => {
    const [first, ...others] = Object.entries(all).map(([name, data]) => passwords[name](data));
    assert.ok(others.every((other) => other === first));
    return first;
  };
  const [before, same] = [await fetched(), await fetched()];
  assert.ok(before.one === same.one && before.several === same.several, "what did not change is the same object");
  const old = shown(same);
  await open.rotate();
  const after = await fetched();
  assert.ok(after.one !== same.one && shown(after) !== old && shown(after) === open.session.proxy.password);
  assert.equal(client.getQueryData(["one"]).proxy.password.reveal(), open.session.proxy.password.reveal());
});

test("Vue's reactive values and refs take clients, sessions, walks, settings and answers", async (t) => {
  const { isReactive, reactive, readonly, ref, watch } = tool("@vue/reactivity");
  const { service, agent: client, open, read } = await opened(t);
  const agent = ref(client);
  const state = reactive({ open, answer: undefined });
  let changes = 0;
  watch(() => state.answer?.proxy.password, () => (changes += 1));
  const before = state.open.session.proxy.password;
  state.answer = await state.open.rotate();
  assert.ok(isReactive(state.answer));
  const { password } = state.answer.proxy;
  assert.ok(password !== before && password.reveal() !== before.reveal() && password === state.open.session.proxy.password);
  state.answer = await read();
  assert.equal(changes, 1, "the same login is no change");
  assert.equal(readonly(state).answer.proxy.password.reveal(), password.reveal());
  assert.match(ref(new ProxySettings(state.answer.proxy)).value.url, /^http:/);
  const items = [];
  for await (const item of ref(agent.value.walkProducts({ limit: 100 })).value) items.push(item);
  assert.ok(items.length > 0);
  assert.equal((await agent.value.saved()).length, 1);
  await state.open.terminate();
  assert.ok(ref(service.reseller()).value.token === undefined);
});

test("a copy by Immer or spread has the login of the answer that it is a copy of", async (t) => {
  const { produce } = tool("immer");
  const { open } = await opened(t);
  assert.ok(open instanceof OpenSession);
  const first = open.session;
  const second = await open.rotate();
  assert.notEqual(first.proxy.password, second.proxy.password);
  const state = produce({ session: first }, (draft) => {
    draft.session = second;
    draft.session.seen = true;
  });
  const changed = produce(second, (draft) => {
    assert.equal(draft.proxy.password.reveal(), second.proxy.password.reveal());
    draft.proxy.host = "proxy.example";
  });
  const copy = { ...first, proxy: { ...first.proxy, ...second.proxy } };
  assert.equal(changed.proxy.host, "proxy.example");
  for (const { proxy } of [state.session, changed, copy]) assert.equal(proxy.password, second.proxy.password);
  assert.match(new ProxySettings(copy.proxy).url, new RegExp(encodeURIComponent(second.proxy.password.reveal())));
});

test("what a service says of secrets that nobody documents is hidden, too", async () => {
  const data = { items: [{ note: { Full_URL: "u", tokens: ["a"], Token: { a: 1 } }, username: null }], email: true, password: "p" };
  const fetch = async () => Response.json({ success: true, data });
  const agent = new AgentClient({ apiKey: "key", baseUrl: "http://127.0.0.1:9/v1", fetch });
  const { items: [{ note, username }], email, password } = await agent.getBalance();
  assert.deepEqual([note.Full_URL, note.tokens, note.Token, email, password].map((secret) => secret.reveal()), ["u", '["a"]', '{"a":1}', "true", "p"]);
  assert.equal(username, null);
  await agent.close();
});
