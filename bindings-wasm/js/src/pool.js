// Pools of sessions, which Node has and a page has not. hopline.d.ts documents them.
import { ofPools, ofSessions } from "../gen/pools.js";
import { meta } from "./answers.js";
import { lettingOthers } from "./clock.js";
import { dispatcherOver } from "./dispatch.js";
import { Registry } from "./dropped.js";
import { asked, refuse } from "./error.js";
import { waitOf } from "./exceptions.js";
import { disposable } from "./hide.js";
import { ofLease } from "./loopback.js";
import { alsoOptions, meant, optionsIn, ours } from "./names.js";
import { ProxySettings } from "./proxy.js";
import { seenOf } from "./seen.js";
import { object, spell } from "./values.js";
import { wordsOf } from "./words.js";

alsoOptions([...ofPools.filter((name) => name.includes("_")), "grace_ms", "include_static"]);

/** All options of a pool, as they are spelled here. */
const OF_POOLS = [...ofSessions, ...ofPools.map(ours), "blocked"];

/** A lease without references goes back. */
const dropped = new Registry((giveBack) => giveBack());

/** Opens a pool of a client. */
export async function openPool(client, engine, name, options) {
  object("open_pool", "options", options);
  const [sessions, own] = [{}, {}];
  for (const [option, value] of Object.entries(options)) {
    const isKnown = OF_POOLS.includes(option) || option.includes("_");
    if (!isKnown) throw refuse("invalid", "open_pool", `\`options\` has an unknown field \`${option}\`${meant(option, false, OF_POOLS)}`, { field: "options" });
    (ofSessions.includes(option) ? sessions : own)[option] = value;
  }
  const { blocked, ...rest } = own;
  // A promise would count as true, and every answer as a block.
  if (blocked !== undefined && (typeof blocked !== "function" || blocked.constructor?.name === "AsyncFunction")) {
    throw refuse("invalid", "open_pool", "`blocked` must be a function of a response that is not asynchronous", { field: "blocked" });
  }
  const { pool: no } = await engine.call("open_pool", { ...sessions, ...spell("open_pool", rest), name });
  return new pool(client, engine, no, name, blocked, own.leasesPerSession);
}

/** The holder of a dispatcher may have closed it already. */
function closeAll(dispatchers) {
  for (const dispatcher of dispatchers) dispatcher.close().catch(() => {});
  dispatchers.clear();
}

/** Nothing goes through a session that was given back. */
function closePorts(ports) {
  for (const port of ports) port.close();
  ports.clear();
}

/** The options of a call of a pool, which has these. */
function given(operation, options, names) {
  object(operation, "options", options);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  const added = unknown && (meant(unknown, false, names) || `; there is ${names.map((name) => `\`${name}\``).join(", ")}`);
  if (unknown !== undefined) throw refuse("invalid", operation, `\`options\` has an unknown field \`${unknown}\`${added}`, { field: "options" });
  return options;
}

/** Sessions that are lent. */
const pool = /* @__PURE__ */ disposable("close", class Pool {
  #client;
  #engine;
  #pool;
  /** By slot: the exit that was lent last, with its callers' data. */
  #exits = new Map();
  /** The dispatchers of its exits. */
  #dispatchers = new Set();
  #unheard;
  #blocked;
  #leasesPerSession;

  constructor(client, engine, pool, name, blocked, leasesPerSession = 1) {
    this.#blocked = blocked;
    this.#leasesPerSession = leasesPerSession;
    // A client is not dropped before its pools.
    this.#client = client;
    this.#engine = engine;
    this.#pool = pool;
    this.name = name;
    // The engine must not refer to the pool, or to its callers' data, or none of it would ever be dropped.
    const dispatchers = this.#dispatchers;
    this.#unheard = engine.atEnd(() => closeAll(dispatchers));
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  async withLease(...given) {
    const [use, options] = given.reverse();
    if (typeof use !== "function") throw refuse("invalid", "with_lease", "its last argument must be a function, which is given the lease");
    const lease = await this.acquire(options);
    try {
      return await use(lease);
    } finally {
      lease.release();
    }
  }

  async acquire(options = {}) {
    const { signal, ...wanted } = given("acquire", options, ["target", "key", "avoid", "timeoutMs", "signal"]);
    const begun = performance.now();
    const granted = await this.#call("acquire", wanted, signal).catch((error) => {
      this.#note("acquire_failed", begun, { kind: error.kind });
      return lettingOthers(error);
    });
    const lease = new lent(this, this.#engine, granted, wanted.target, this.#exit(granted), (...told) => this.#note(...told), this.#blocked);
    this.#note("lease_acquired", begun);
    // A caller that has given up does not come for it.
    if (!signal?.aborted) return lease;
    lease.release();
    throw refuse("cancelled", "acquire", "was cancelled; its lease was given back", { cause: signal.reason });
  }

  dispatcher(options = {}) {
    object("dispatcher", "options", options);
    const { key, timeoutMs, ...ofAgent } = options;
    // No more connections than leases, since `undici` calls one busy for a moment after its answer has come.
    const connect = (proxy) => proxyAgent({ connections: this.#leasesPerSession, ...ofAgent, ...proxy.undici() });
    const terms = { ...(key !== undefined && { key }), ...(timeoutMs !== undefined && { timeoutMs }) };
    const made = dispatcherOver(this, terms, connect, this.#engine.service, undici());
    this.#dispatchers.add(made);
    return made;
  }

  async status(options = {}) {
    const status = await this.#call("pool_status", given("pool_status", options, ["everywhere"]));
    if (status.hold) status.hold.why = optionsIn(status.hold.why);
    return status;
  }

  async waitReady(count, options = {}) {
    const { signal, ...rest } = given("wait_ready", options, ["timeoutMs", "signal"]);
    await this.#call("wait_ready", { count, ...rest }, signal);
  }

  async pause() {
    await this.#call("pause_pool");
  }

  async resume() {
    await this.#call("resume_pool");
  }

  async close(options = {}) {
    const params = given("close_pool", options, ["graceMs"]);
    // A client that is closed has closed its pools.
    if (this.#engine.isClosing) return;
    await this.#call("close_pool", params).catch((error) => {
      if (!this.#engine.isClosing || error.kind !== "cancelled") throw error;
    });
    this.#forget();
  }

  async drain(options = {}) {
    await this.#call("drain_pool", given("drain_pool", options, ["graceMs", "everywhere", "includeStatic"]));
    this.#forget();
  }

  #forget() {
    this.#exits.clear();
    closeAll(this.#dispatchers);
    this.#unheard();
  }

  async #call(operation, params = {}, signal) {
    return this.#engine.call(operation, { pool: this.#pool, ...spell(operation, params) }, { signal });
  }

  #note(event, begun, more) {
    this.#engine.note({ event, operation: "acquire", pool: this.name, duration_ms: performance.now() - begun, ...more });
  }

  /**
   * The callers' data for an exit: it is empty again when the exit has changed. If another client has changed what the core has, that wins
   * over all members that are JSON; the other members, such as an HTTP client, belong to the exit and stay.
   */
  #exit(given) {
    const { slot, session_id, generation } = given;
    const before = this.#exits.get(slot);
    // As the caller wrote them: a member that is named like a secret of the service, such as cookies, is the caller's own.
    const { data } = JSON.parse(meta(given).raw);
    const [told, dispatchers] = [dataText(data), this.#dispatchers];
    const isSame = before?.session_id === session_id && before.generation === generation;
    if (isSame && before.told === told) return before;
    if (!isSame && before?.dispatcher) {
      this.#dispatchers.delete(before.dispatcher);
      before.dispatcher.close().catch(() => {});
    }
    const kept = isSame ? { own: ownOf(before.data), dispatcher: before.dispatcher } : { own: {}, dispatcher: undefined };
    const exit = { session_id, generation, data: { ...kept.own, ...data }, told, isRefused: false, dispatcher: kept.dispatcher, dispatchers };
    this.#exits.set(slot, exit);
    return exit;
  }
});

/** A session that was lent. */
const lent = /* @__PURE__ */ disposable("release", class Lease {
  /** The pool is not dropped before its leases, nor is its client. */
  #pool;
  #engine;
  #exit;
  /** The pool and the lease's number there; `undefined` once it was given back. */
  #ref;
  #note;
  #blocked;
  #retryAt;
  /** The ports that lead through it. */
  #ports = new Set();
  #begun = performance.now();

  constructor(pool, engine, { pool: no, lease, slot, generation, session_id, proxy }, target, exit, note, blocked) {
    this.#blocked = blocked;
    this.#pool = pool;
    this.#engine = engine;
    this.#exit = exit;
    this.#note = note;
    const [ref, ports] = [(this.#ref = [no, lease]), this.#ports];
    // From here on the lease goes back in any case.
    const giveBack = () => engine.peek((core, now) => core.giveBack(...ref, ...now));
    dropped.register(this, () => (closePorts(ports), giveBack()), this);
    const settings = new ProxySettings(proxy);
    ofLease(settings, this, engine, ports);
    Object.assign(this, { sessionId: session_id, slot, generation, target, proxy: settings });
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  get valid() {
    const ref = this.#ref;
    return ref !== undefined && this.#engine.peek((core) => core.isValid(...ref)) === true;
  }

  get data() {
    return this.#exit.data;
  }

  observe(seen) {
    const isBlock = typeof seen === "object" && !(seen instanceof Error) && this.#blocked?.(seen);
    if (typeof isBlock?.then === "function") {
      isBlock.then(undefined, () => {});
      throw refuse("misuse", "observe", "`blocked` answered with a promise, and must say at once whether a response is a block; nothing was observed");
    }
    const [told, wait, ref] = [seenOf(isBlock ? "block" : seen), waitOf(seen), this.#ref];
    const ask = (core, now) => [asked(() => core.observeLease(...ref, told, wait, ...now), { given: { seen } }), core.retryAt(...ref)];
    const [advice, ms] = (ref && this.#engine.peek(ask)) ?? [];
    if (advice !== undefined) this.#retryAt = ms === undefined ? undefined : new Date(ms);
    const what = JSON.parse(told);
    this.#note("lease_observed", this.#begun, { seen: what.status ?? what, advice });
    // A lease that is not valid any more, or whose exit has changed, is of no use.
    return advice ?? "give_back";
  }

  get retryAt() {
    return this.#retryAt;
  }

  discard() {
    const ref = this.#ref;
    if (ref) this.#engine.peek((core, now) => core.discard(...ref, ...now));
  }

  dispatcher() {
    if (!this.valid) throw refuse("misuse", "dispatcher", `${this.#ref ? "the lease is not valid any more" : "the lease was given back"}; acquire another one`);
    const exit = this.#exit;
    if (!exit.dispatcher) exit.dispatchers.add((exit.dispatcher = proxyAgent(this.proxy.undici())));
    return exit.dispatcher;
  }

  release() {
    const ref = this.#ref;
    if (!ref) return;
    this.#ref = undefined;
    dropped.unregister(this);
    closePorts(this.#ports);
    this.#note("lease_released", this.#begun);
    this.#keepData(ref);
    this.#engine.peek((core, now) => core.giveBack(...ref, ...now));
  }

  /** The store keeps the callers' data that are JSON, if they have changed. */
  #keepData(ref) {
    const [exit, text] = [this.#exit, dataText(this.#exit.data)];
    const bytes = new TextEncoder().encode(text).length;
    const isLong = bytes > MOST_DATA;
    if (isLong && !exit.isRefused) this.#note("lease_data_too_long", this.#begun, { bytes });
    exit.isRefused = isLong;
    if (isLong || text === exit.told) return;
    this.#engine.peek((core, now) => {
      try {
        core.setLeaseData(...ref, text, ...now);
        exit.told = text;
      } catch {
        // A lease that is not valid any more leaves nothing behind.
      }
    });
  }
}, Symbol.dispose);

/** The most data of an exit that the store keeps, in bytes of JSON. */
const MOST_DATA = 4096;

/** The members that are JSON: plain values, lists and objects. */
function dataText(data) {
  return `{${Object.entries(data).flatMap(([name, value]) => jsonOf(name, value) ?? []).join(",")}}`;
}

/** The members that are not. */
const ownOf = (data) => Object.fromEntries(Object.entries(data).filter((member) => jsonOf(...member) === undefined));

function jsonOf(name, value) {
  try {
    const text = isPlain(value) ? JSON.stringify(value) : undefined;
    return text === undefined ? undefined : `${JSON.stringify(name)}:${text}`;
  } catch {
    return undefined;
  }
}

/** An object of a class, such as a client, is not written, nor is what holds one. */
function isPlain(value) {
  if (typeof value !== "object" || value === null) return typeof value !== "function";
  return (Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value))) && Object.values(value).every(isPlain);
}

/** Of `undici` 8 only its wrapper serves the `fetch` of older ones, such as Node's own. */
function proxyAgent(options) {
  const { ProxyAgent, Dispatcher1Wrapper } = undici();
  const agent = new ProxyAgent(options);
  return Dispatcher1Wrapper ? new Dispatcher1Wrapper(agent) : agent;
}

function undici() {
  try {
    // By its name, so that a bundler of a server includes it where it is installed.
    return require("undici");
  } catch (cause) {
    const isMissing = cause?.code === "MODULE_NOT_FOUND" && /Cannot find module 'undici'/.test(cause.message);
    const why = isMissing ? "is needed for it; install it beside this one" : `is there, but could not be loaded by Node ${process.versions.node}: ${wordsOf(cause)}; install a version of it for this Node`;
    throw refuse("misuse", "dispatcher", `the package \`undici\` ${why}`, { cause });
  }
}
