// Several processes on one folder share a pool: real processes and sockets. HOPLINE_FLEET_SECONDS makes each story longer.
import assert from "node:assert/strict";
import { test } from "node:test";

import { NOBODY_WAITS, SECONDS, SETTLES, allOpen, calm, fleet, least, now, pause, shares, until } from "./lib/fleet.mjs";

const story = (name, run) => test(`fleet: ${name}`, { timeout: 240_000 + 4000 * SECONDS }, run);
/** Complains of sessions that are not so many a process, and of leases that are less than a part of the mean, since a moment. */
const uneven = (all, each, part) => (from) => {
  const [had, counts] = [all.map(({ sessions }) => sessions(from).size), shares(all, from)];
  return had.every((sessions) => sessions === each) && least(counts) >= part ? undefined : `${had} sessions, ${counts} leases`;
};
/** The time that a story takes, in milliseconds. */
const lasts = (seconds, part = 1) => 1000 * Math.max(seconds, SECONDS * part);

story("six processes of twenty callers each have half of the mean", async (t) => {
  const { start, charges, living } = await fleet(t, { callers: 20, rest: 20, pool: { size: 20 } });
  const all = Array.from({ length: 6 }, () => start());
  const from = await allOpen(all);
  await pause(SETTLES);
  const settled = now();
  await pause(lasts(15));
  const to = now();
  const [counts, gaps] = [shares(all, settled), all.map((one) => one.longestWithout(from, to))];
  console.log(`six of twenty: ${counts}; least ${least(counts).toFixed(2)} of the mean; longest without ${gaps} ms`);
  assert.ok(least(counts) >= 0.5, `${counts}`);
  assert.ok(Math.max(...gaps) < NOBODY_WAITS, `${gaps}`);
  assert.deepEqual([await charges(), await living()], [20, 20]);
});

for (const how of ["close", "kill"]) {
  story(`after a rolling restart by ${how} no process is without a lease for ten seconds`, async (t) => {
    const { start, charges, living } = await fleet(t, { callers: 4, work: 300, rest: 20, pool: { size: 12 } });
    const all = Array.from({ length: 6 }, () => start());
    const from = await allOpen(all);
    await pause(lasts(5, 0.1));
    const since = all.map(() => from);
    for (const place of all.keys()) {
      await all[place][how]();
      all[place] = start();
      since[place] = await allOpen([all[place]]);
      await pause(lasts(1, 0.05));
    }
    await pause(lasts(15, 0.5));
    const to = now();
    const [counts, gaps] = [shares(all, since[5]), all.map((one, place) => one.longestWithout(since[place], to))];
    console.log(`after a rolling restart by ${how}: ${counts}; longest without ${gaps} ms`);
    assert.ok(Math.max(...gaps) < NOBODY_WAITS, `${gaps}`);
    assert.deepEqual([await charges(), await living()], [12, 12]);
  });
}

story("a process that needs one session gets it beside five that need all", async (t) => {
  const { start } = await fleet(t, { callers: 20, pool: { size: 12 } });
  await allOpen(Array.from({ length: 5 }, () => start()));
  await pause(5000);
  const one = start({ callers: 1 });
  const from = await allOpen([one]);
  await pause(lasts(15));
  const [gap, got] = [one.longestWithout(from, now()), one.leases(from)];
  const covered = (got.length * 200) / (now() - (got[0]?.begun ?? Infinity));
  console.log(`one that needs one: ${got.length} leases, ${covered.toFixed(2)} of the time since the first; longest without ${gap} ms`);
  // The first session comes within 10 s. From then on it has one whenever it works.
  assert.ok(gap < NOBODY_WAITS && covered > 0.5, `${gap}, ${covered}`);
});

story("a process that uses one of twelve leaves eleven to another one", async (t) => {
  const { start, living, charges } = await fleet(t, { pool: { size: 12 } });
  const first = start({ pool: { keepReady: 11 } });
  await until(async () => (await living()) === 12);
  // A process that had all of them, and now uses one at a time.
  await first.close();
  await allOpen([start()]);
  await pause(3000);
  const other = start({ callers: 11, work: 120_000 });
  const from = await allOpen([other]);
  await until(() => other.leases().length === 11);
  const took = other.leases()[10].begun - from;
  console.log(`beside one at a time: eleven after ${Math.round(took)} ms`);
  assert.ok(took < NOBODY_WAITS, `${took}`);
  assert.equal(await charges(), 12);
});

story("six processes on three sessions take turns", async (t) => {
  const { start, charges } = await fleet(t, { callers: 2, work: 300, pool: { size: 3 } });
  const all = Array.from({ length: 6 }, () => start());
  const from = await allOpen(all);
  await pause(lasts(30));
  const gaps = all.map((one) => one.longestWithout(from, now()));
  console.log(`six on three: ${shares(all, from)}; longest without ${gaps} ms`);
  assert.ok(Math.max(...gaps) < 15_000 + 5000, `${gaps}`);
  assert.equal(await charges(), 3);
});

story("where six of twenty can be bought three processes have two each", async (t) => {
  const { service, start, living, charges } = await fleet(t, { callers: 10, pool: { size: 20 } });
  await service.control("balance", { amount: "24" }); // of 4 USD each
  const all = Array.from({ length: 3 }, () => start());
  await allOpen(all);
  await until(async () => (await living()) === 6);
  // A client that got nothing for 5 s says so, and what was on its way counts for 10 s more.
  const from = await calm(lasts(6, 0.5), uneven(all, 2, 0.75));
  console.log(`six of twenty can be bought: two sessions each, ${shares(all, from)} leases`);
  assert.equal(await charges(), 6);
});

story("eight keys have eight sessions and nearly as many leases as without, and two processes of eight keys four each", async (t) => {
  const { start, living, charges } = await fleet(t, { callers: 8, pool: { size: 8 } });
  const had = [];
  for (const isKeyed of [false, true]) {
    const one = start({ isKeyed });
    await until(async () => (await living()) === 8 && one.sessions().size === 8);
    const from = now();
    await pause(lasts(8, 0.5));
    had.push([one.sessions(from).size, one.leases(from).length]);
    assert.deepEqual(one.unserved(), []);
    await one.close();
  }
  const two = [start({ isKeyed: true }), start({ isKeyed: true })];
  await allOpen(two);
  // Each says what it needs, and the first one gives back what it has beyond its share.
  const from = await calm(lasts(8, 0.5), uneven(two, 4, 0.5));
  console.log(`keyed: sessions and leases without keys and with them ${had.join("; ")}; two of eight keys: four sessions each, ${shares(two, from)} leases`);
  assert.ok(had[1][0] === 8 && had[1][1] >= 0.8 * had[0][1], `${had}`);
  assert.deepEqual(two.map((one) => one.unserved()), [[], []]);
  assert.equal(await charges(), 8);
});

story("processes with bursts of five, ten seconds apart, share ten sessions", async (t) => {
  const { start, charges } = await fleet(t, { callers: 5, work: 4000, every: 60_000, pool: { size: 30 } }, "--provisioning-ms", "2000");
  const all = Array.from({ length: SECONDS ? 6 : 3 }, (_, place) => start({ after: place * 10_000 }));
  await pause(lasts(30));
  console.log(`bursts: ${all.map((one) => one.leases().length)} leases, ${await charges()} bought`);
  assert.deepEqual(all.map((one) => one.leases().length >= 5 && one.unserved().length === 0), all.map(() => true));
  assert.ok((await charges()) <= 10, `${await charges()}`);
});

story("where purchases work and reads are refused at most two are bought, and callers are told why", async (t) => {
  const { service, start, charges, open } = await fleet(t, { callers: 5, timeoutMs: 5000, pool: { size: 20 } }, "--provisioning-ms", "100");
  await service.control("account", { denied: ["get_session"] });
  const all = Array.from({ length: 3 }, () => start());
  await allOpen(all);
  await pause(lasts(15));
  const bought = await charges();
  const told = all.flatMap((one) => one.unserved().map(({ message }) => message));
  console.log(`reads refused: ${bought} bought, ${told.length} callers told`);
  assert.ok(bought >= 1 && bought <= 2, `${bought}`);
  assert.ok(told.length > 0 && told.every((message) => /does not buy|bought|with another client/.test(message)), `${told[0]}`);
  await service.control("account", { denied: [] });
  await (await open()).resume();
  await until(() => all.every((one) => one.leases().length > 0));
});

story("while no proxy can be reached at most three sessions are bought beyond the size", async (t) => {
  const { start, charges } = await fleet(t, { callers: 5, work: 50, timeoutMs: 2000, seen: "proxy", pool: { size: 5, replace: "failing" } });
  const all = [start(), start()];
  await allOpen(all);
  await pause(lasts(20));
  console.log(`proxies out: ${await charges()} bought, ${shares(all, 0)} leases, ${all.map((one) => one.unserved().length)} unserved`);
  assert.ok((await charges()) <= 5 + 3, `${await charges()}`);
  for (const { reason, message } of all.flatMap((one) => one.unserved())) assert.ok(reason && message.includes("5 sessions: "), message);
});

for (const what of ["pause", "drain", "replace"]) {
  story(`a ${what} holds at once while a trial is under way`, async (t) => {
    const { start, charges, open } = await fleet(t, { callers: 4, timeoutMs: 2000, pool: { size: 4 } }, "--provisioning-ms", "200000");
    const one = start();
    await allOpen([one]);
    await until(async () => (await charges()) === 1);
    const begun = now();
    if (what === "replace") await open({ country_code: "US", onChange: "replace" });
    else await (await open())[what](...(what === "drain" ? [{ everywhere: true }] : []));
    const took = now() - begun;
    // All callers of the other process hear of it, of whom each waits for 2 s at most.
    const isTold = ({ message }) => /paused|drained|closed|another request/.test(message);
    await until(() => one.unserved(begun).some(isTold) || one.failures().some(isTold));
    const heard = now() - begun;
    console.log(`${what} while a trial is under way: took ${Math.round(took)} ms, heard after ${Math.round(heard)} ms`);
    // The trial takes 200 s; a drain may wait for its grace.
    assert.ok(took < 15_000 && heard < 15_000, `${took}, ${heard}`);
    await pause(2000);
    assert.equal(await charges(), 1);
  });
}

story("a drained pool stays drained through restarts", async (t) => {
  const { start, living, charges, open } = await fleet(t, { callers: 3, timeoutMs: 2000, pool: { size: 3 } });
  const first = start();
  await until(() => first.leases().length > 10);
  await (await open()).drain({ everywhere: true });
  await until(async () => (await living()) === 0);
  const bought = await charges();
  // Its callers hear that the pool is closed, and a supervisor starts it again.
  await until(() => first.failures().length > 0);
  await first.close();
  for (let restarts = 0; restarts < 2; restarts += 1) {
    const again = start();
    await until(() => again.unserved().length >= 3);
    for (const { message } of again.unserved()) assert.match(message, /paused|drained/);
    await again.close();
  }
  assert.deepEqual([await charges(), await living()], [bought, 0]);
  await (await open()).resume();
  const last = start();
  await until(() => last.leases().length > 0);
});

for (const [off, words] of [[3_600_000, "ahead"], [-3_600_000, "behind"]]) {
  story(`a process whose clock is an hour ${words} changes nothing`, async (t) => {
    const { start, charges, living } = await fleet(t, { callers: 8, rest: 20, pool: { size: 8 } });
    const odd = start({ clockOff: off });
    const others = [start(), start()];
    const all = [odd, ...others];
    const from = await allOpen(all);
    assert.ok(Math.abs(odd.clock() - others[0].clock() - off) < 60_000);
    await pause(SETTLES);
    const settled = now();
    await pause(lasts(10));
    const [counts, gaps] = [shares(all, settled), all.map((one) => one.longestWithout(from, now()))];
    // Its sessions and its entry do not outlast it.
    await odd.kill();
    const killed = now();
    await until(() => others.every(({ sessions }) => sessions(now() - 2000).size >= 4));
    const took = now() - killed;
    console.log(`a clock an hour ${words}: ${counts} leases; longest without ${gaps} ms; the others have four sessions each ${Math.round(took)} ms after it was killed`);
    assert.ok(least(counts) >= 0.5 && Math.max(...gaps) < NOBODY_WAITS, `${counts}, ${gaps}`);
    // An entry is believed for 10 s.
    assert.ok(took < 10_000 + 15_000, `${took}`);
    assert.deepEqual(all.map((one) => one.unserved().map(({ message }) => message)), [[], [], []]);
    assert.deepEqual([await charges(), await living()], [8, 8]);
  });
}

story("a target that blocks after three answers does not make another one wait", async (t) => {
  const { start, charges } = await fleet(t, { callers: 2, targets: ["a", "b"], blocksAfter: { a: 3 }, pool: { size: 2, keepReady: 2 } });
  const one = start();
  await until(() => one.sessions().size === 2);
  const from = now();
  await pause(lasts(20));
  const of = (target) => one.leases(from).filter((lease) => lease.target === target);
  const waits = of("b").map(({ waited }) => waited).sort((some, other) => other - some);
  console.log(`a blocks after three: ${of("a").length} leases of a, ${of("b").length} of b, which waited ${waits.slice(0, 5)} ms at most`);
  // A lease of `a` takes 0.2 s, and a loaded machine adds to it; a rest of `a` is 60 s.
  assert.ok(waits[0] < 5000 && waits.length > 2.5 * lasts(20) / 1000, `${waits[0]}, ${waits.length}`);
  assert.deepEqual([one.unserved().filter(({ target }) => target === "b").length, await charges()], [0, 2]);
});
