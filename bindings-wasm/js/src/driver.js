import { hostText } from "../gen/hopline_wasm.js";
import { refusal } from "./ask.js";
import { callOf, failed, never } from "./calls.js";
import { Alarm, Clock } from "./clock.js";
import { isNotOpened, notOpened, quiet, refuse, spoken } from "./error.js";
import { exchange } from "./exchange.js";
import { host } from "./host.js";
import { respelled } from "./names.js";
import { onAbort } from "./signal.js";

/** The longest delay that a timer takes. */
const LONGEST = 2 ** 31 - 1;

/** The longest wait of a command for a call of its store, in milliseconds. */
const STORING = 30_000;

/** The wait of a closing client for its store's calls, and then for its release and closing, in milliseconds. */
const [CLOSING, LETTING_GO] = [10_000, 2_000];

/** The operations that still run when a client is closed: sessions cost money until they are ended. */
const ENDING = new Set(["terminate_session", "drain_pool"]);

/**
 * Drives a core: carries out its steps, answers each once, and hands out the results. The contract of `poll` is the only part of the API
 * that it knows.
 */
export function drive(core, http, store, listeners) {
  const names = hostText("response_headers", "", "").split("\n");
  const clock = new Clock();
  const now = () => [Date.now(), clock.now()];
  let serves = false;
  /** By command: the caller that waits for its result. */
  const waiting = new Map();
  /** By step: the function that gives up a request that is out. */
  const out = new Map();
  /** The steps whose calls of the store are out. */
  const asking = new Set();
  /** Makes the calls of the store. */
  const within = inTime();
  /** True once the store did not answer in time: it gets no more calls. */
  let isGivenUp = false;
  /** The number of times that claims have ended: a request from before that, which has not begun, is not sent. */
  let losses = 0;
  /** True once only terminations are sent. */
  let isClosing = false;
  let isClosed = false;
  let [alarm, idle] = [];
  /** The time of the alarm. */
  let due = Infinity;
  /**
   * By command that was begun here: its operation, its start time, the function that runs work in the async context of its caller (one pump
   * does the work of all), and facts that the core does not keep: the last failure of the store, the last exception of `fetch`, and whether
   * another client of this process owns a name.
   */
  const commands = new Map();
  /** The reason why the store failed the command that ended last: others may have waited for the same. */
  let storeError;

  /** Makes the store this client's own from now on. Before that it may be another client's, and is left alone. */
  function serve() {
    serves = true;
    store?.onLost?.(lose);
  }

  /** Runs a command that `start` starts, and returns its result as the core gives it. */
  function run(operation, start, signal) {
    return ask(operation, (core, _, wait) => wait(start(core)), signal);
  }

  /**
   * Asks the core a question that is answered at once, and carries out the steps that follow. `question` takes the core, the time, and a
   * function that returns the result of a command: one may end in this very turn, so its waiter must be known before.
   */
  function ask(operation, question, signal) {
    // A call may have come before the client was closed, and have waited until now.
    if (isClosing) throw refusal(operation, "closed");
    let stop;
    const wait = (command) => {
      stop = () => cancel(command);
      commands.set(command, { operation, begun: clock.now(), within: host.context() });
      listeners.note({ event: "began", operation, command });
      const ended = new Promise((resolve, reject) => waiting.set(command, { resolve, reject }));
      if (!signal) return ended;
      const unheard = onAbort(signal, stop);
      return ended.finally(unheard);
    };
    const answer = question(core, now(), wait);
    // A call that was given up by now is not sent first.
    if (signal?.aborted) stop?.();
    pump();
    return answer;
  }

  /** Returns the result of a command that the core began and that has ended, as the core gives it; `known` are the facts about it. */
  function take(command, known) {
    if (isClosed) throw refusal("resume_all", "closed");
    const ended = result(command, known);
    pump();
    return ended;
  }

  /** Cancels everything that is under way except terminations, releases all names, and waits until everything is in the store. */
  async function close() {
    isClosing = true;
    for (const command of [...waiting.keys()]) if (!ENDING.has(commands.get(command)?.operation)) cancel(command);
    for (const { ends, stop } of [...out.values()]) if (!ends) stop("aborted");
    const ended = new Promise((resolve) => {
      idle = resolve;
      settle();
    });
    try {
      await patiently(() => ended, CLOSING);
      for (const command of [...waiting.keys()]) cancel(command);
      for (const { stop } of [...out.values()]) stop("aborted");
      giveUp();
      // A name that can't be released is free once the store is closed.
      const own = serves ? store : undefined;
      await patiently(() => own?.release(), LETTING_GO).catch(() => {});
      await patiently(() => own?.close?.(), LETTING_GO);
    } finally {
      isClosed = true;
      alarm?.clear();
      // The commands that the time was too short for.
      const unknown = { effect: "unknown", advice: "resume" };
      for (const [command, { reject }] of waiting) reject(refuse("cancelled", commands.get(command)?.operation ?? "client", "was under way when its client was closed; money may have moved", unknown));
      waiting.clear();
      core.free();
    }
  }

  /** Answers the calls that the store has not: they may or may not be done. Waiting callers get the core's conclusion. */
  function giveUp() {
    isGivenUp = true;
    for (const id of asking) failed(core, id, now());
    asking.clear();
    pump();
  }

  function cancel(command) {
    if (isClosed) return;
    out.get(core.cancel(command, ...now()))?.stop("aborted");
    pump();
  }

  function lose(ended) {
    if (isClosed) return;
    losses += 1;
    listeners.note({ event: "claims_lost", operation: "store", claims: ended?.length ?? 1 });
    core.lost(ended?.join("\n"), ...now());
    pump();
  }

  function pump() {
    // The answer of a step that was out for too long may come when the client is closed.
    if (isClosed) return;
    storeError = undefined;
    try {
      while (step());
    } catch (error) {
      // The core does not throw; if it did, no caller would get an answer any more.
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    }
    settle();
  }

  function step() {
    const next = core.poll(...now());
    if (!Array.isArray(next)) {
      sleep(next);
      return false;
    }
    const [what, ...given] = next;
    about(COMMAND_OF[what](...given)).within(() => STEPS[what](...given));
    return true;
  }

  /**
   * Returns the facts about a command. A command that the core began for another, such as for `resumeAll`, is a part of that; any other is
   * a pool's.
   */
  function about(command) {
    const known = commands.get(command);
    const above = known || typeof command !== "number" ? undefined : commands.get(core.callerOf(command));
    if (!above) return known ?? { within: host.root };
    above.parts ??= new Map();
    if (!above.parts.has(command)) above.parts.set(command, { within: above.within });
    return above.parts.get(command);
  }

  /** By step: its command, if it has one. */
  const COMMAND_OF = { store: (_, command) => command, send: (_, command) => command, completed: (command) => command, notify: ({ command }) => command };

  /** By step: its execution. */
  const STEPS = {
    store: askStore,
    send: transmit,
    completed(command) {
      const ended = result(command);
      waiting.get(command)?.resolve(ended);
      waiting.delete(command);
    },
    notify(event) {
      if (event.because) quiet((event.because = respelled(event.because)));
      listeners.tell(event);
    },
  };

  /** The result of a command, with the facts of its host. */
  function result(command, known = commands.get(command)) {
    const taken = core.take(command);
    const { operation, begun, store, trouble, isBusyHere, parts } = known ?? {};
    if (operation) {
      const { kind, effect, advice } = taken[0] === "failed" ? taken[1] : {};
      listeners.note({ event: "ended", operation, command, kind, effect, advice, duration_ms: clock.now() - begun });
      commands.delete(command);
    }
    storeError = store ?? storeError;
    return { taken, parts, store: storeError, trouble, isBusyHere };
  }

  /**
   * Sets the alarm to continue the core at that time. An earlier alarm stays: a continuation that is too early costs less than another
   * alarm.
   */
  function sleep(until = Infinity) {
    if (until < due) {
      alarm?.clear();
      const begun = clock.now();
      const wait = Math.min(Math.max(Math.ceil(until - begun), 0), LONGEST);
      due = Math.min(until, begun + wait);
      alarm = host.root(() => new Alarm(ring, wait));
    }
    // Work that no caller waits for does not keep a program from ending.
    alarm?.keep(waiting.size > 0);
  }

  function ring() {
    clock.reached(due);
    due = Infinity;
    pump();
  }

  async function askStore(id, command, call) {
    if (isGivenUp) return failed(core, id, now());
    asking.add(id);
    // The command may have ended by the time the store answers.
    const known = about(command);
    const begun = clock.now();
    let answer = failed;
    try {
      const { told, isBusyHere } = await within(() => callOf(call)(store));
      answer = told;
      if (isBusyHere) known.isBusyHere = true;
    } catch (error) {
      if (isNotOpened(error)) answer = never;
      known.store = spoken(error);
    }
    listeners.note({ event: "stored", operation: "store", call: call[0], failed: answer === failed || answer === never, duration_ms: clock.now() - begun });
    // The closing client may have answered it meanwhile.
    if (!asking.delete(id)) return;
    answer(core, id, now());
    pump();
  }

  async function transmit(id, command, head, body, timeoutMs, maxBody, sendBefore) {
    const [operation, method, url, ...lines] = head.split("\n");
    const headers = [];
    for (let n = 0; n < lines.length; n += 2) headers.push([lines[n], lines[n + 1]]);
    const known = about(command);
    const { signal, send, stop } = exchange(http(), { method, url, headers, body: body ?? undefined, timeoutMs, maxBody, names });
    // A termination is sent whatever the store says.
    const ends = sendBefore > Number.MAX_SAFE_INTEGER;
    out.set(id, { ends, stop });
    const before = losses;
    const doubt = !ends && store?.vouches && (await doubted(store, signal, Math.min(timeoutMs, sendBefore - clock.now())));
    let came;
    if (signal.aborted || (isClosing && !ends)) came = { kind: "aborted", sent: "never" };
    // Nothing is sent under a name that another client may own by now.
    else if (!ends && (doubt || losses !== before || clock.now() > sendBefore)) came = { kind: "late", sent: "never", error: doubt };
    else {
      const begun = clock.now();
      listeners.note({ event: "sent", operation, command, method, path: new URL(url).pathname, send: id });
      came = await send();
      listeners.note({ event: "answered", operation, command, method, send: id, status: came.status, failure: came.kind, duration_ms: clock.now() - begun });
    }
    out.delete(id);
    if (isClosed) return;
    if (came.error) known.trouble = came.error;
    if (came.kind) core.fail(id, came.kind, came.sent, ...now());
    else core.respond(id, came.status, came.headers, came.body, came.truncated, ...now());
    pump();
  }

  /** Reports to the closing client that nothing is under way. */
  function settle() {
    if (waiting.size + out.size + asking.size === 0) idle?.();
  }

  return { serve, run, ask, take, close };
}

/**
 * Makes calls that hold nobody for longer than they may. A call that takes longer stays out and may still be done, so none is made before it has
 * ended: that one could be done first.
 */
function inTime() {
  const late = new Set();
  /** True once a call has waited in vain for a late one: the next ones don't wait. */
  let isStuck = false;
  return async (call) => {
    if (late.size > 0 && (isStuck || !(await patiently(() => Promise.all(late).then(() => true), STORING)))) isStuck = late.size > 0;
    if (isStuck) throw notOpened(refuse("store", "store", "an earlier call of the store has not ended"));
    const calling = call();
    const came = await patiently(() => calling, STORING);
    if (came) return came;
    const ended = calling.catch(() => {}).then(() => late.delete(ended) && late.size === 0 && (isStuck = false));
    late.add(ended);
    throw refuse("store", "store", `the store did not answer within ${STORING / 1000} seconds`);
  };
}

/**
 * Returns `undefined` if the claims of a store stand; else the error that says so. A store that can't answer within that many milliseconds
 * does not vouch.
 */
async function doubted(store, signal, ms) {
  let cause;
  // A cancelled caller does not wait for the store.
  const given = new Promise((resolve) => onAbort(signal, resolve));
  const stand = await patiently(() => Promise.race([given, store.vouches()]), ms).catch((error) => {
    cause = spoken(error);
  });
  return stand ? undefined : new Error("the store did not vouch for its claims", cause && { cause });
}

/** Waits, but not forever: then returns `undefined`. */
async function patiently(work, ms) {
  let alarm;
  const enough = new Promise((resolve) => {
    alarm = new Alarm(resolve, ms);
  });
  return Promise.race([Promise.resolve().then(work), enough]).finally(() => alarm.clear());
}
