// Operations in doubt: lost answers, crashes and waits that are given up. Nothing is placed twice, and nothing is lost.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore } from "hopline";

import { WANTED, folder, program, shop } from "./lib/sandbox.mjs";

const orders = async (service, userId) => (await service.books()).static_orders.filter(({ user_id }) => user_id === userId).map(({ order_no }) => order_no);

for (const kind of ["drop_before", "drop_after"]) {
  test(`an order whose answer is lost (${kind}) is in doubt, can be looked up, and is settled by hand`, async (t) => {
    const { service, wanted } = await shop(t);
    const path = folder();
    const reseller = service.reseller({ store: new FolderStore(path) });
    await service.fault({ kind }, "create_static_order");
    const doubt = await reseller.placeOrder(wanted, { intent: "job-17" }).catch((error) => error);
    assert.deepEqual([doubt.kind, doubt.effect, doubt.advice, doubt.attempts], ["in_doubt", "unknown", "reconcile", 1], doubt.stack);
    const again = await reseller.placeOrder(wanted, { intent: "job-17" }).catch((error) => error);
    assert.deepEqual([again.kind, again.record], ["in_doubt", doubt.record], "started again it is still the same doubt");
    await reseller.close();

    const next = service.reseller({ store: new FolderStore(path) });
    assert.deepEqual((await next.saved()).map(({ holds, intent }) => [holds, intent]), [["in_doubt_for_good", "job-17"]]);
    const { operation, complete, candidates } = await next.reconcile(doubt.record);
    assert.deepEqual([operation, complete], ["create_static_order", true]);
    const placed = await orders(service, wanted.userId);
    assert.equal(placed.length, kind === "drop_after" ? 1 : 0);
    assert.deepEqual(candidates.map(({ read, item }) => [read, item.orderNo]), placed.map((order_no) => ["list_static_orders", order_no]));
    if (placed.length > 0) assert.ok(candidates[0].matched.includes("userId") && candidates[0].matched.includes("ipCount"));
    await assert.rejects(next.settle(doubt.record, "not_happened", { became: "1" }), { kind: "invalid", field: "became", effect: "none" });
    await assert.rejects(next.settle(doubt.record, "happened", { became: "" }), { kind: "invalid", message: /settle: `became` must not be empty/ });
    const settled = placed.length > 0 ? next.settle(doubt.record, "happened", { became: placed[0] }) : next.settle(doubt.record, "not_happened", { early: true });
    assert.equal(await settled, true);
    // The record has changed since the doubt was looked at, or is gone.
    if (placed.length > 0) await assert.rejects(next.settle(doubt.record, "happened"), { kind: "refused", effect: "none" });
    else assert.equal(await next.settle(doubt.record, "happened"), false);
    await assert.rejects(next.reconcile(doubt.record), { kind: placed.length > 0 ? "refused" : "misuse" });
    // Started again, the intent goes on with what was found, or is placed anew.
    const { phase, order_no } = await next.placeOrder(wanted, { intent: "job-17" });
    assert.equal(phase, "ready");
    if (placed.length > 0) assert.equal(order_no, placed[0]);
    assert.equal((await orders(service, wanted.userId)).length, 1);
  });
}

test("a sub-user, an adjustment and a purchase of the agent API can be looked up too", async (t) => {
  const { service, reseller, wanted } = await shop(t);
  await service.fault({ kind: "drop_after" }, "adjust_sub_user_balance");
  const adjusted = await reseller.adjustSubUserBalance({ user_id: wanted.userId, amount: 5, remark: "job-18" }).catch((error) => error);
  const found = await reseller.reconcile(adjusted.record);
  assert.ok(found.candidates.some(({ read, matched }) => read === "list_agent_transactions" && matched.includes("remark")), JSON.stringify(found));
  await service.fault({ kind: "drop_after" }, "create_user");
  const bob = () => reseller.createUser({ username: "bob", password: "secret-1" }, { intent: "bob" });
  const made = await bob().catch((error) => error);
  const { candidates } = await reseller.reconcile(made.record);
  assert.deepEqual(candidates.map(({ matched, item }) => [matched, item.username.reveal()]), [[["username"], "bob"]]);
  assert.ok(!JSON.stringify(candidates).includes("bob"));
  // The caller that makes the sub-user goes on with the one that was found.
  await assert.rejects(reseller.settle(made.record, "happened", { became: "bob" }), { kind: "invalid", field: "became" });
  assert.equal(await reseller.settle(made.record, "happened", { became: candidates[0].item.id }), true);
  assert.deepEqual({ ...(await bob()) }, { id: candidates[0].item.id });
  const agent = service.agent();
  await service.fault({ kind: "drop_after" }, "create_session");
  const bought = await agent.createSession(WANTED, { attempts: 1 }).catch((error) => error);
  assert.ok((await agent.reconcile(bought.record)).candidates.some(({ read }) => read === "list_transactions"));
  await assert.rejects(agent.reconcile("r"), { kind: "misuse", effect: "none" });
});

test("giving up the wait leaves the order, which is waited for again", async (t) => {
  const { service, reseller, wanted } = await shop(t, "--provisioning-ms", "1500");
  const given = new AbortController();
  const events = reseller.events();
  const placing = reseller.placeOrder(wanted, { intent: "job-17", signal: given.signal });
  for await (const { event } of events) if (event === "ordered") break;
  given.abort(new Error("given up"));
  const ended = await placing.catch((error) => error);
  assert.deepEqual([ended.kind, ended.effect, ended.cause.message], ["cancelled", "done", "given up"], ended.stack);
  const placed = await orders(service, wanted.userId);
  assert.deepEqual(placed, [ended.order_no]);
  assert.equal((await reseller.waitOrder(ended.order_no)).phase, "ready");
  const again = await reseller.placeOrder(wanted, { intent: "job-17" });
  assert.deepEqual([again.phase, again.order_no], ["ready", ended.order_no]);
  assert.deepEqual(await orders(service, wanted.userId), placed);
});

for (const [POINT, placed, holds] of [["put:1", 1, "accepted"], ["send:1", 0, "in_doubt_for_good"], ["sent:1", 1, "in_doubt_for_good"], ["was put:2", 1, "accepted"], ["was read:2", 1, "accepted"]]) {
  test(`killed at ${POINT} and started again, an order is placed once at most`, async (t) => {
    const { service, wanted } = await shop(t, "--provisioning-ms", "200");
    const path = folder();
    const variables = { HOPLINE_USERNAME: service.username, HOPLINE_PASSWORD: service.password, HOPLINE_BACKEND_URL: service.backend_url, FOLDER: path, WANTED: JSON.stringify(wanted) };
    const killed = await program("orderer.mjs", { ...variables, POINT }).ended;
    assert.equal(killed.signal, "SIGKILL", killed.errors);
    const again = await program("orderer.mjs", variables).ended;
    assert.equal(again.code, 0, again.errors);
    const told = JSON.parse(again.out);
    const books = await orders(service, wanted.userId);
    assert.deepEqual([books.length, told.holds], [placed, [holds]], again.out);
    if (holds === "accepted") assert.deepEqual([told.phase, told.order_no], ["ready", books[0]]);
  });
}

test("an answer that is late, doubled or a gateway's page places nothing twice", async (t) => {
  const { service, reseller, wanted } = await shop(t);
  for (const fault of [{ kind: "html", status: 502, after: true }, { kind: "truncate" }, { kind: "html", status: 200 }]) {
    const before = (await service.state()).executions.create_static_order ?? 0;
    await service.fault(fault, "create_static_order");
    const error = await reseller.placeOrder(wanted).catch((error) => error);
    assert.deepEqual([error.kind, error.effect], ["in_doubt", "unknown"], `${JSON.stringify(fault)}: ${error.stack}`);
    assert.ok(((await service.state()).executions.create_static_order ?? 0) - before <= 1);
  }
});
