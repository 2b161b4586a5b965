// The login of a reseller: once for any number of calls, again when it must be, and never with what was refused.
import assert from "node:assert/strict";
import { test } from "node:test";

import { ResellerClient, meta } from "hopline";

import { login, sandbox } from "./lib/sandbox.mjs";

/** A client that counts its logins, and the tokens that it sends with. */
function counting(t, service, more) {
  const told = { logins: 0, tokens: new Set() };
  const reseller = service.reseller({
    fetch: (url, init) => {
      if (url.endsWith("/auth/login")) told.logins += 1;
      else told.tokens.add(new Headers(init.headers).get("authorization"));
      return fetch(url, init);
    },
    ...more,
  });
  return { told, reseller };
}

test("twenty calls at once log in once, and a token that has expired is renewed once", async (t) => {
  const service = await sandbox(t);
  const { told, reseller } = counting(t, service);
  const many = () => Promise.all(Array.from({ length: 20 }, () => reseller.getCurrentBalance()));
  await many();
  assert.deepEqual([told.logins, told.tokens.size], [1, 1]);
  await service.control("tokens", { expire: true });
  assert.equal((await many()).length, 20);
  assert.deepEqual([told.logins, told.tokens.size], [2, 2]);
  assert.ok(told.tokens.has(`Bearer ${reseller.token}`));
});

test("a write whose token has expired is done once", async (t) => {
  const service = await sandbox(t);
  const { told, reseller } = counting(t, service);
  await reseller.getDashboard();
  await service.control("tokens", { expire: true });
  await reseller.createUser({ username: "ann", password: "secret-1" });
  assert.deepEqual([told.logins, (await service.books()).users.length], [2, 1]);
});

test("a wrong password is sent once, whatever is called after it", async (t) => {
  const service = await sandbox(t);
  const { told, reseller } = counting(t, service, { password: "canary-wrong" });
  const all = await Promise.allSettled([reseller.getDashboard(), reseller.listSubUsers(), reseller.createUser({ username: "ann", password: "secret-1" })]);
  for (const { reason } of [...all, ...(await Promise.allSettled([reseller.getDashboard()]))]) {
    assert.deepEqual([reason.kind, reason.effect, reason.advice], ["refused", "none", "reauthenticate"], reason.stack);
    assert.ok(!reason.stack.includes("canary"));
  }
  assert.equal(told.logins, 1);
  await reseller.login({ username: service.username, password: service.password });
  assert.ok(meta(await reseller.getDashboard()).raw);
  assert.equal(told.logins, 2);
});

test("a reseller starts from a token, and without a login it lasts as long as that one", async (t) => {
  const service = await sandbox(t);
  const first = service.reseller();
  assert.equal(first.token, undefined);
  await first.getDashboard();
  const { token } = first;
  await first.close();
  assert.equal(first.token, undefined);
  const next = new ResellerClient({ baseUrl: login(service).baseUrl, token, account: "mine" });
  t.after(() => next.close());
  assert.equal(next.token, token);
  assert.ok(meta(await next.getDashboard()).raw);
  await service.control("tokens", { expire: true });
  await assert.rejects(next.getDashboard(), { kind: "refused", effect: "none", advice: "reauthenticate", status: 401 });
});
