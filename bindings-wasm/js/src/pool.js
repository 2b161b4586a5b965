// Pools of sessions, which Node has and a page has not. hopline.d.ts documents them.
import { ofPools, ofSessions } from "../gen/pools.js";
import { asked, refuse } from "./error.js";
import { waitOf } from "./faults.js";
import { disposable } from "./hide.js";
import { alsoOptions } from "./names.js";
import { ProxySettings } from "./proxy.js";
import { seenOf } from "./seen.js";
import { object, spell } from "./values.js";

alsoOptions([...ofPools, "grace_ms", "include_static"]);

/** A lease that nobody has any more goes back. */
const dropped = new FinalizationRegistry((giveBack) => giveBack());

/** Opens a pool of a client. */
export async function openPool(client, engine, name, options) {
  object("open_pool", "options", options);
  const [sessions, own] = [{}, {}];
  for (const [option, value] of Object.entries(options)) (ofSessions.includes(option) ? sessions : own)[option] = value;
  const { pool: no } = await engine.call("open_pool", { ...sessions, ...spell("open_pool", own), name });
  return new pool(client, engine, no, name);
}

/** Sessions that are lent. */
const pool = /* @__PURE__ */ disposable("close", class Pool {
  #client;
  #engine;
  #pool;
  /** By slot: the exit that was lent last, with what its callers keep of it. */
  #exits = new Map();

  constructor(client, engine, pool, name) {
    // A client is not dropped before its pools.
    this.#client = client;
    this.#engine = engine;
    this.#pool = pool;
    this.name = name;
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  async withLease(options, use) {
    const lease = await this.acquire(options);
    try {
      return await use(lease);
    } finally {
      lease.release();
    }
  }

  async acquire(options = {}) {
    object("acquire", "options", options);
    const { signal, ...wanted } = options;
    const begun = performance.now();
    const given = await this.#call("acquire", wanted, signal).catch((error) => {
      this.#note("acquire_failed", begun, { kind: error.kind });
      throw error;
    });
    this.#note("lease_acquired", begun);
    const lease = new lent(this, this.#engine, given, wanted.target, this.#exit(given), (...told) => this.#note(...told));
    // Whoever has given up does not come for it.
    if (!signal?.aborted) return lease;
    lease.release();
    throw refuse("cancelled", "acquire", "was cancelled; its lease was given back", { cause: signal.reason });
  }

  async status({ everywhere } = {}) {
    return this.#call("pool_status", { everywhere });
  }

  async waitReady(count, { timeoutMs, signal } = {}) {
    await this.#call("wait_ready", { count, timeoutMs }, signal);
  }

  async pause() {
    await this.#call("pause_pool");
  }

  async resume() {
    await this.#call("resume_pool");
  }

  async close({ graceMs } = {}) {
    await this.#call("close_pool", { graceMs });
    this.#forget();
  }

  async drain({ graceMs, everywhere, includeStatic } = {}) {
    await this.#call("drain_pool", { graceMs, everywhere, includeStatic });
    this.#forget();
  }

  async #call(operation, params = {}, signal) {
    return this.#engine.call(operation, { pool: this.#pool, ...spell(operation, params) }, { signal });
  }

  #note(event, begun, more) {
    this.#engine.note({ event, operation: "acquire", pool: this.name, duration_ms: performance.now() - begun, ...more });
  }

  /** What callers keep of an exit: it is empty again when the exit has changed. */
  #exit({ slot, session_id, generation }) {
    const before = this.#exits.get(slot);
    if (before?.session_id === session_id && before.generation === generation) return before;
    before?.dispatcher?.close();
    const exit = { session_id, generation, data: {}, dispatcher: undefined };
    this.#exits.set(slot, exit);
    return exit;
  }

  #forget() {
    for (const { dispatcher } of this.#exits.values()) dispatcher?.close();
    this.#exits.clear();
  }
});

/** A session that was lent. */
const lent = /* @__PURE__ */ disposable("release", class Lease {
  #pool;
  #engine;
  #exit;
  /** Its pool and its number there; nothing once it was given back. */
  #ref;
  #note;
  #begun = performance.now();

  constructor(pool, engine, { pool: no, lease, slot, generation, session_id, proxy }, target, exit, note) {
    this.#pool = pool;
    this.#engine = engine;
    this.#exit = exit;
    this.#note = note;
    const ref = (this.#ref = [no, lease]);
    Object.assign(this, { sessionId: session_id, slot, generation, target, proxy: new ProxySettings(proxy) });
    dropped.register(this, () => engine.peek((core, now) => core.giveBack(...ref, ...now)), this);
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
    const [told, wait, ref] = [seenOf(seen), waitOf(seen), this.#ref];
    const advice = ref && this.#engine.peek((core, now) => asked(() => core.observeLease(...ref, told, wait, ...now), { given: { seen } }));
    this.#note("lease_observed", this.#begun, { seen: JSON.parse(told).status ?? JSON.parse(told), advice });
    // What is this client's no more, or has another exit, is of no use.
    return advice ?? "give_back";
  }

  dispatcher() {
    if (!this.#ref) throw refuse("misuse", "dispatcher", "the lease was given back; acquire another one");
    return (this.#exit.dispatcher ??= new (undici().ProxyAgent)(this.proxy.undici()));
  }

  release() {
    const ref = this.#ref;
    if (!ref) return;
    this.#ref = undefined;
    dropped.unregister(this);
    this.#note("lease_released", this.#begun);
    this.#engine.peek((core, now) => core.giveBack(...ref, ...now));
  }
}, Symbol.dispose);

function undici() {
  try {
    return require("undici");
  } catch (cause) {
    throw refuse("misuse", "dispatcher", "the package `undici` is needed for it; install it beside this one", { cause });
  }
}
