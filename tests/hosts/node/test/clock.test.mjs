// Clocks and timers that a test puts in the place of the program's: no wait is without an end, and a purchase is made once.
import assert from "node:assert/strict";
import { test } from "node:test";

import { FolderStore } from "hopline";

import { WANTED, folder, sandbox } from "./lib/sandbox.mjs";
import { source } from "./lib/source.mjs";
import { tool } from "./lib/tools.mjs";

const FakeTimers = tool("@sinonjs/fake-timers");
const { Alarm, Clock } = await source("clock.js");

const TIMERS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate"];
const EVERYTHING = [...TIMERS, "Date", "performance"];

test("a clock goes on where it was, whatever takes its place, and a timer that rings moves it", () => {
  const [first, second] = [{ time: 100, now: () => first.time }, { time: 0, now: () => second.time }];
  let place = first;
  const clock = new Clock(() => place);
  const steps = [
    // The event, then the time.
    [() => {}, 100],
    [() => (first.time = 150), 150],
    [() => (place = second), 150],
    [() => (second.time = 10), 160],
    [() => clock.reached(200), 200],
    [() => clock.reached(190), 200],
    [() => (second.time = 20), 210],
    [() => (second.time = 0), 210],
    [() => (second.time = 5), 215],
    [() => ([place, first.time] = [first, 90_000]), 215],
    [() => (first.time = 90_001), 216],
  ];
  steps.forEach(([happens, time], n) => {
    happens();
    assert.equal(clock.now(), time, `step ${n}`);
  });
});

test("an alarm rings once, by its own timers or by those in their place, and not after it was cleared", () => {
  const timers = () => {
    const set = new Map();
    return { set: (ring) => (set.set(ring, ring), ring), clear: (timer) => set.delete(timer), ring: () => [...set.keys()].forEach((ring) => ring()), size: () => set.size };
  };
  for (const who of ["own", "other"]) {
    const both = { own: timers(), other: timers() };
    let rung = 0;
    const alarm = () => new Alarm(() => (rung += 1), 5, both.other, both.own);
    alarm();
    both[who].ring();
    both.own.ring();
    both.other.ring();
    assert.deepEqual([rung, both.own.size(), both.other.size()], [1, 0, 0]);
    alarm().clear();
    assert.deepEqual([both.own.size(), both.other.size()], [0, 0]);
    new Alarm(() => (rung += 1), 5, both.own, both.own);
    assert.equal(both.own.size(), 1);
  }
});

/** A purchase whose answer comes at the second try, of a session that takes a while. */
async function buys(t, more = {}) {
  const service = await sandbox(t, "--provisioning-ms", "1000");
  await service.fault({ kind: "html", status: 503 }, "create_session");
  return { service, agent: service.agent(more) };
}

const bought = async (service, open) => {
  assert.equal(open.session.status, "active");
  assert.equal((await service.state()).charges.length, 1);
};

for (const [name, config] of Object.entries({
  "a `performance` that stands": { toFake: ["performance"] },
  "a `Date` that stands": { toFake: ["Date"] },
  "a `Date` of 1970 and a `performance` that stand": { toFake: ["Date", "performance"], now: 0 },
  "timers that never ring": { toFake: TIMERS },
  "all of them, which stand": { toFake: EVERYTHING, now: 0 },
  "all of them, which go on by themselves": { toFake: EVERYTHING, shouldAdvanceTime: true },
})) {
  for (const when of ["before a client is made", "while it waits"]) {
    test(`${name}, ${when}`, { timeout: 30_000 }, async (t) => {
      const { service, agent } = await buys(t, { store: new FolderStore(folder()) });
      let clock;
      // Node's HTTP client clears the timers that it had set by those in their place: one that is left rings at a connection that is gone.
      const install = () => (clock = FakeTimers.install({ now: Date.now(), shouldClearNativeTimers: true, ...config }));
      if (when === "before a client is made") install();
      const opening = (clock ? service.agent({ store: new FolderStore(folder()), dailyCapUsd: 100 }) : agent).openSession(WANTED);
      if (!clock) agent.onEvent(({ event }) => event === "answered" && !clock && install());
      try {
        await bought(service, await opening);
        assert.ok(clock, "it was never installed");
      } finally {
        clock?.uninstall();
      }
    });
  }
}

test("a purchase in doubt is not sent again once the clock has gone on by years: its key may be forgotten", async (t) => {
  const { service, agent } = await buys(t);
  let clock;
  t.after(() => clock?.uninstall());
  agent.onEvent(({ event }) => event === "answered" && (clock ??= FakeTimers.install({ toFake: ["Date"], now: Date.now() + 3 * 365 * 86_400_000 })));
  await assert.rejects(agent.openSession(WANTED), { kind: "in_doubt", effect: "unknown" });
  assert.equal((await service.requests()).length, 1);
});

test("timers that ring when a test says so end the waits of a client", { timeout: 30_000 }, async (t) => {
  const service = await sandbox(t);
  await service.fault({ kind: "error", code: "RATE_LIMIT_EXCEEDED", status: 429, retry_after: 30 }, "create_session");
  const begun = performance.now();
  const moment = setTimeout;
  const clock = FakeTimers.install({ toFake: EVERYTHING, shouldClearNativeTimers: true });
  t.after(() => clock.uninstall());
  const agent = service.agent();
  const opening = agent.openSession(WANTED, { deadlineMs: 3_600_000 });
  let isOpen = false;
  opening.finally(() => (isOpen = true)).catch(() => {});
  // A request that is out needs a moment that is no test's.
  for (; !isOpen; await new Promise((resolve) => moment(resolve, 20))) await clock.tickAsync(5000);
  clock.uninstall();
  await bought(service, await opening);
  assert.ok(performance.now() - begun < 15_000, "the half minute was the test's own");
});

test("timers that are put back in the middle of a wait", { timeout: 30_000 }, async (t) => {
  const { service } = await buys(t);
  const clock = FakeTimers.install({ toFake: EVERYTHING, now: Date.now(), shouldClearNativeTimers: true });
  const agent = service.agent();
  agent.onEvent(({ event }) => event === "answered" && clock.uninstall());
  await bought(service, await agent.openSession(WANTED));
  assert.equal(globalThis.setTimeout.clock, undefined);
});
