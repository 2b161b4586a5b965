import { Client, quote } from "../gen/hopline_wasm.js";
import { operations, walks } from "../gen/operations.js";
import { Driver } from "./driver.js";
import { asked, read, refuse } from "./error.js";
import { Listeners } from "./events.js";
import { host } from "./host.js";
import { Intents } from "./intents.js";
import { MemoryStore } from "./memory.js";
import { Walk } from "./pages.js";
import { OpenSession } from "./session.js";
import { encode, object, parse, signalOf, spell } from "./values.js";

/** The `fetch` that was here when this was loaded. Whoever puts another in its place answers for that one. */
const ownFetch = globalThis.fetch;

/** The client of one account. hopline.d.ts documents it. */
export class AgentClient {
  #driver;
  #store;
  #opened = false;
  /** Makes the core; it must be loaded. */
  #make;
  /** From the first call on: when the core is there and the store was opened. */
  #ready;
  #closing;
  #listeners = new Listeners();
  #restored = { held: [], refused: [] };
  #sameAccount;
  /** Whether what was spent today is limited. */
  #capped;
  /** Whether records are of this account, with nothing taken in. */
  #fits;
  #intents;

  constructor(options = {}) {
    object("client", "options", options);
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const { fetch = globalThis.fetch, store = new MemoryStore(), sameAccount = false, ...rest } = { ...host.environment(), ...given };
    if (typeof fetch !== "function") throw refuse("invalid", "client", "`fetch` must be a function");
    if (!["open", "keep", "remove"].every((name) => typeof store?.[name] === "function")) {
      throw refuse("invalid", "client", "`store` must be a store: open, keep and remove are functions");
    }
    if (rest.baseUrl !== undefined) rest.baseUrl = host.resolve(rest.baseUrl);
    const spelled = encode("client", "options", spell(rest));
    const make = () => {
      try {
        return new Client(spelled, crypto.getRandomValues(new Uint8Array(16)));
      } catch (error) {
        throw read(error.message);
      }
    };
    // Of a `fetch` that is not our own nobody knows what it did before it failed.
    const http = { fetch, secret: rest.apiKey, ...(fetch === ownFetch && host.failures) };
    this.#make = () => {
      this.#driver = new Driver(make(), http, store, (event) => this.#listeners.tell(event));
    };
    this.#store = store;
    this.#sameAccount = sameAccount === true;
    this.#capped = rest.dailyCapUsd !== undefined;
    this.#intents = new Intents(store, [rest.baseUrl, rest.account ?? rest.apiKey]);
    this.#fits = (records) => {
      const other = make();
      const { refused } = JSON.parse(other.restore([...records].flat(), this.#sameAccount));
      other.free();
      return refused.every(({ reason }) => reason === "damaged");
    };
    // It is loaded while the program goes on. Where it is here already, wrong options are refused at once.
    const loading = host.load();
    if (loading) loading.catch(() => {});
    else this.#make();
  }

  async openSession(params, options = {}) {
    object("open_session", "options", options);
    const { keep = false, ...rest } = options;
    return this.#result(await this.#start("open_session", params, rest), !keep);
  }

  async waitSession(session_id, options) {
    return this.#result(await this.#start("wait_session", { session_id }, options), false);
  }

  async saved() {
    await this.#adopt("saved");
    return JSON.parse(this.#driver.ask((core) => core.savedList()));
  }

  async restored() {
    await this.#adopt("restored");
    return this.#restored;
  }

  async resume(record, options = {}) {
    const signal = signalOf("resume", options);
    await this.#adopt("resume");
    return this.#result(await this.#run("resume", (core) => core.resume(String(record)), signal), false);
  }

  async resumeAll(options = {}) {
    const signal = signalOf("resume_all", options);
    await this.#adopt("resume_all");
    const commands = this.#driver.ask((core) => [...core.resumeAll()]);
    return Promise.allSettled(commands.map(async (command) => this.#result(await this.#run("resume_all", () => command, signal), false)));
  }

  async settle(record, settlement) {
    await this.#adopt("settle");
    if (settlement !== "happened" && settlement !== "not_happened") {
      throw refuse("invalid", "settle", "`settlement` must be one of happened, not_happened");
    }
    const done = this.#driver.ask((core) => core.settle(String(record), settlement === "happened"));
    await this.#letGo();
    return done;
  }

  async forget(record) {
    await this.#adopt("forget");
    const done = this.#driver.ask((core) => core.forget(String(record)));
    await this.#letGo();
    return done;
  }

  async quote(product, quantity) {
    await this.#usable("quote");
    return parse(asked(quote, encode("quote", "product", product), encode("quote", "quantity", quantity)));
  }

  async request(method, path, params = {}, options) {
    object("request", "parameters", params);
    return this.call("request", { ...params, method, path }, options);
  }

  async observe(session_id, seen, options = {}) {
    const signal = signalOf("observe", options);
    await this.#usable("observe");
    const what = encode("observe", "seen", seen);
    const ask = (core) => core.observe(String(session_id), what, ...this.#driver.now());
    const advice = this.#driver.ask((core) => asked(ask, core));
    const { command, ...told } = advice ? JSON.parse(advice) : {};
    if (command === undefined) return advice && told;
    const { data } = this.#result(await this.#run("rotate_session", () => command, signal));
    return { ...told, verdict: "rotated", session: data };
  }

  events(options = {}) {
    const signal = signalOf("events", options);
    if (this.#closing) throw closed("events");
    return this.#listeners.listen(signal);
  }

  close() {
    this.#closing ??= (async () => {
      await this.#ready?.catch(() => {});
      await this.#driver?.close();
      if (this.#opened) await this.#store.close?.();
      this.#listeners.close();
    })();
    return this.#closing;
  }

  /** Every operation of the table is called here. */
  async call(operation, params, options) {
    return this.#result(await this.#start(operation, params, options)).data;
  }

  /** Every list of the table is walked here. */
  walk(list, params = {}, options = {}) {
    const { operation } = list;
    object(operation, "options", options);
    const { position, maxPages, ...rest } = options;
    const page = async (of) => {
      // What asks for the parameters needs the core.
      await this.#usable(operation);
      const asks = JSON.parse(of(encode(operation, "parameters", params)));
      return this.#result(await this.#start(operation, asks, rest));
    };
    return new Walk(list, page, { position, maxPages });
  }

  async #start(operation, params = {}, options = {}) {
    const signal = signalOf(operation, options);
    const { signal: _, ...rest } = options;
    const texts = [encode(operation, "parameters", params), encode(operation, "options", spell(rest))];
    await this.#usable(operation);
    const { intent } = rest;
    const run = () => this.#run(operation, (core) => core.start(operation, ...texts), signal);
    if (typeof intent !== "string" || !this.#opened || !this.#store.claim) return run();
    try {
      return await this.#intents.during(operation, intent, run);
    } catch (error) {
      await this.#letGo();
      throw error;
    }
  }

  /** Gives up the claims of intents that are neither under way nor remembered. */
  async #letGo() {
    if (!this.#opened || this.#closing) return;
    const saved = () => JSON.parse(this.#driver.ask((core) => core.savedList())).flatMap(({ intent }) => intent ?? []);
    await this.#intents.letGo(() => (this.#closing ? undefined : saved()));
  }

  async #run(operation, start, signal) {
    if (this.#closing) throw closed(operation);
    const { taken, ...causes } = await this.#driver.run(start, signal);
    const [how, facts, raw, phase, view] = taken;
    if (how === "failed") throw read(facts, { ...causes, reason: signal?.reason });
    return { facts: JSON.parse(facts), raw, view, phase: phase || undefined };
  }

  /** A session where waiting was asked for or is what was resumed; otherwise the answer alone. */
  #result({ facts, raw, view, phase }, ends) {
    const { request_id } = facts;
    if (ends === undefined) return { data: parse(raw, view, { request_id, phase }), facts, raw };
    const data = parse(raw, view, { request_id });
    if (phase === undefined) return data;
    const { session_id } = facts;
    const session = data ?? facts;
    return new OpenSession(this, { session_id, phase, session, ends: ends && phase !== "ended" && facts.session_type === "dynamic" });
  }

  /** Loads and makes the core, where that is still to be done, and opens the store. */
  async #begin() {
    if (!this.#driver) {
      await host.load();
      this.#make();
    }
    try {
      await this.#store.open({ fits: this.#fits, take: (records) => this.#take(records) });
      this.#opened = true;
      // What clients that are gone have spent today counts, too.
      if (this.#capped) await this.#takeOver();
    } catch (error) {
      this.#driver.storeFailed(error);
    }
  }

  /** Takes in records of the store. Nothing is sent. */
  #take(records) {
    const { held, refused } = JSON.parse(this.#driver.ask((core) => core.restore([...records].flat(), this.#sameAccount)));
    this.#restored.held.push(...held);
    this.#restored.refused.push(...refused);
  }

  /** Takes over what clients left that are gone, where the store is one that several share. */
  async #adopt(operation) {
    await this.#usable(operation);
    if (!this.#opened) return;
    await this.#takeOver().catch((cause) => {
      throw refuse("store", operation, "the store could not be read", { cause });
    });
    await this.#usable(operation);
  }

  async #takeOver() {
    if (!this.#store.adopt) return;
    await this.#store.adopt();
    await this.#letGo();
  }

  async #usable(operation) {
    if (this.#closing) throw closed(operation);
    const ready = (this.#ready ??= this.#begin());
    try {
      await ready;
    } catch (error) {
      // What failed was loading: the next call tries again.
      if (this.#ready === ready) this.#ready = undefined;
      throw error;
    }
    if (this.#closing) throw closed(operation);
  }
}

for (const [method, { api, operation }] of Object.entries(operations)) {
  const call = {
    [method](params, options) {
      return this.call(operation, params, options);
    },
  };
  if (api === "agent") Object.defineProperty(AgentClient.prototype, method, { value: call[method], writable: true, configurable: true });
}
for (const [method, { api, ...list }] of Object.entries(walks)) {
  const walk = {
    [method](params, options) {
      return this.walk(list, params, options);
    },
  };
  if (api === "agent") Object.defineProperty(AgentClient.prototype, method, { value: walk[method], writable: true, configurable: true });
}
if (Symbol.asyncDispose) {
  Object.defineProperty(AgentClient.prototype, Symbol.asyncDispose, { value: AgentClient.prototype.close });
}

function closed(operation) {
  return refuse("misuse", operation, "this client is closed; make another one");
}
