import { Client as Core } from "../gen/hopline_wasm.js";
import { plain } from "../gen/operations.js";
import { Driver } from "./driver.js";
import { asked, heed, read, refuse } from "./error.js";
import { Listeners } from "./events.js";
import { host } from "./host.js";
import { Intents } from "./intents.js";
import { MemoryStore } from "./memory.js";
import { Walk } from "./pages.js";
import { encode, object, parse, signalOf, spell } from "./values.js";

/** The `fetch` that was here when this was loaded. Whoever puts another in its place answers for that one. */
const ownFetch = globalThis.fetch;

/** What runs the calls of one account, whatever its API. */
export class Engine {
  #driver;
  #store;
  #opened = false;
  /** Whether records can be kept: the store is open, and what is needed of it was read. */
  #keeps = false;
  /** Why they can't. */
  #failure;
  /** Makes the core; it must be loaded. */
  #make;
  /** While the core is loaded and the store is opened: when that is done. */
  #beginning;
  #closing;
  #listeners = new Listeners();
  #restored = { held: [], refused: [] };
  #sameAccount;
  /** Whether what was spent today is limited. */
  #capped;
  /** Whether records are of this account, with nothing taken in. */
  #fits;
  #intents;
  /** Makes what a caller is given of something that has a phase: a session, an order. */
  #handle;

  constructor(api, options = {}, handle) {
    object("client", "options", options);
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const { fetch = globalThis.fetch, store = new MemoryStore(), sameAccount = false, ...rest } = { ...host.environment(api, given), ...given };
    if (typeof fetch !== "function") throw refuse("invalid", "client", "`fetch` must be a function");
    if (!["open", "keep", "remove"].every((name) => typeof store?.[name] === "function")) {
      throw refuse("invalid", "client", "`store` must be a store: open, keep and remove are functions");
    }
    if ("api" in rest) throw refuse("invalid", "client", "`options` has an unknown field `api`", { field: "options" });
    if (rest.baseUrl === undefined) throw refuse("invalid", "client", `the base URL is missing: give \`baseUrl\`${host.elsewhere(api)}`, { field: "baseUrl" });
    rest.baseUrl = host.resolve(rest.baseUrl);
    const spelled = encode("client", "options", spell("client", { ...rest, api }));
    const make = () => asked(() => new Core(spelled, crypto.getRandomValues(new Uint8Array(16))));
    // Of a `fetch` that is not our own nobody knows what it did before it failed.
    const http = { fetch, secrets: () => [rest.username, rest.password], ...(fetch === ownFetch && host.failures) };
    this.#make = () => {
      this.#driver = new Driver(make(), http, (event) => this.#listeners.tell(event));
    };
    this.#store = store;
    this.#handle = handle;
    this.#sameAccount = sameAccount === true;
    this.#capped = rest.dailyCapUsd !== undefined;
    // A key, a login and a base URL may change between two starts; only what is named is another account for sure.
    this.#intents = new Intents(store, () => [api, rest.account ?? null]);
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

  get restored() {
    return this.#restored;
  }

  /** What the core says at present; nothing before it is here, and nothing once the client is closed. */
  peek(question) {
    return this.#closing ? undefined : this.#driver?.ask(question);
  }

  /** Asks the core for something that is answered at once. `question` takes the core and the time. */
  async ask(operation, question, signal) {
    await this.usable(operation);
    return this.#driver.ask(question, signal);
  }

  /** The same about all records: those of clients that are gone are taken over first. */
  async askAll(operation, question, signal) {
    return heed(operation, signal, async (begin) => {
      await this.#readAll(operation);
      begin();
      return this.ask(operation, question, signal);
    });
  }

  /** Runs an operation, and gives its answer. */
  async call(operation, params, options) {
    return this.#data(operation, await this.#start(operation, params, options));
  }

  /** The answer of a command. */
  async answer(operation, result, signal) {
    return this.#data(operation, this.#read(await result, signal));
  }

  /** Runs an operation that waits for a session or an order, and gives that. */
  async wait(operation, params, options, ends) {
    return this.#given(await this.#start(operation, params, options), ends);
  }

  /** Goes on with the command that `start` gives, which may be of an intent; `undefined` where it gives none. */
  async resume(start, signal, intent) {
    return heed("resume", signal, async (begin) => {
      await this.#readAll("resume");
      const resumed = await this.#claiming("resume", intent, async () => {
        begin();
        const command = await this.ask("resume", (core, _, wait) => {
          const command = start(core);
          return command === undefined ? undefined : { result: wait(command) };
        }, signal);
        return command && { value: await this.follow(command.result, signal) };
      });
      if (!resumed) await this.letGo();
      return resumed?.value;
    });
  }

  /** What a command that was gone on with gives: a session or an order, or the answer alone. */
  async follow(result, signal) {
    return this.#given(this.#read(await result, signal));
  }

  /** A walk through a list. */
  walk(list, params = {}, options = {}) {
    const { operation } = list;
    object(operation, "options", options);
    const { position, maxPages, ...rest } = options;
    const page = async (of) => {
      // What asks for the parameters needs the core.
      await heed(operation, signalOf(operation, rest), () => this.usable(operation));
      const taken = await this.#start(operation, JSON.parse(of(encode(operation, "parameters", params))), rest);
      return { data: this.#data(operation, taken), ...taken };
    };
    return new Walk(list, page, { position, maxPages });
  }

  events(options) {
    const signal = signalOf("events", options);
    if (this.#closing) throw closed("events");
    return this.#listeners.listen(signal);
  }

  close() {
    this.#closing ??= (async () => {
      await this.#beginning?.catch(() => {});
      await this.#driver?.close();
      if (this.#opened) await this.#store.close?.();
      this.#listeners.close();
    })();
    return this.#closing;
  }

  /** Gives up the claims of intents that are neither under way nor remembered. */
  async letGo() {
    await this.#driver?.kept();
    if (!this.#opened || this.#closing) return;
    const saved = () => this.#driver.ask((core) => core.savedList()).flatMap(({ intent }) => intent ?? []);
    await this.#intents.letGo(() => (this.#closing ? undefined : saved()));
  }

  /**
   * When the client can be used, unless it is closed. A store that can't be opened stops nothing but what must be kept, and is
   * tried again by the next call, as is a core that can't be loaded.
   */
  async usable(operation) {
    if (this.#closing) throw closed(operation);
    if (!this.#keeps) await (this.#beginning ??= this.#begin().finally(() => (this.#beginning = undefined)));
    if (this.#closing) throw closed(operation);
  }

  #data(operation, { facts: { request_id }, raw, view, phase }) {
    return parse(raw, view, { request_id, phase }, plain[operation]);
  }

  async #start(operation, params = {}, options = {}) {
    const signal = signalOf(operation, options);
    const { signal: _, ...rest } = options;
    const texts = [encode(operation, "parameters", params), encode(operation, "options", spell(operation, rest))];
    const { intent } = rest;
    return heed(operation, signal, async (begin) => {
      await this.usable(operation);
      // The intent may have been begun under another name of the account.
      if (intent !== undefined && this.#sameAccount) await this.#readAll(operation);
      const run = async () => {
        begin();
        if (this.#closing) throw closed(operation);
        return this.#read(await this.#driver.run((core) => core.start(operation, ...texts), signal), signal);
      };
      return this.#claiming(operation, intent, run);
    });
  }

  /** Does what is done under an intent, which is this client's alone meanwhile. */
  async #claiming(operation, intent, run) {
    if (typeof intent !== "string" || !this.#opened || !this.#store.claim) return run();
    try {
      return await this.#intents.during(operation, intent, run);
    } catch (error) {
      await this.letGo();
      throw error;
    }
  }

  /** What a command was answered with, or its error. */
  #read({ taken, ...causes }, signal) {
    const [how, facts, raw, phase, view] = taken;
    if (how === "failed") throw read(facts, { ...causes, reason: signal?.reason });
    return { facts: JSON.parse(facts), raw, view, phase: phase ?? undefined };
  }

  #given({ facts, raw, view, phase }, ends) {
    const data = parse(raw, view, { request_id: facts.request_id });
    return phase === undefined ? data : this.#handle({ data, facts, phase, ends });
  }

  /** Loads and makes the core, where that is still to be done, and opens the store. */
  async #begin() {
    if (!this.#driver) {
      await host.load();
      this.#make();
    }
    try {
      if (!this.#opened) await this.#store.open({ fits: this.#fits, take: (records) => this.#take(records) });
      this.#opened = true;
      // What clients that are gone have spent today counts, too.
      if (this.#capped) await this.#takeOver();
      this.#driver.use(this.#store);
      this.#keeps = true;
    } catch (error) {
      this.#failure = error;
      this.#driver.use({ keep: () => Promise.reject(error), remove: async () => {} });
    }
  }

  /** Opens the store, and takes over what clients left that are gone. */
  async #readAll(operation) {
    await this.usable(operation);
    const failed = (what) => (cause) => {
      throw refuse("store", operation, `the store could not be ${what}, so nobody knows what it holds; nothing was sent; mend the store`, { cause, advice: "mend_store" });
    };
    if (!this.#keeps) failed("opened")(this.#failure);
    await this.#takeOver().catch(failed("read"));
  }

  /** Takes in records of the store. Nothing is sent. */
  #take(records) {
    const { held, refused } = JSON.parse(this.#driver.ask((core) => core.restore([...records].flat(), this.#sameAccount)));
    this.#restored.held.push(...held);
    this.#restored.refused.push(...refused);
  }

  /** Takes over what clients left that are gone, where the store is one that several share. */
  async #takeOver() {
    if (!this.#store.adopt) return;
    await this.#store.adopt();
    await this.letGo();
  }
}

function closed(operation) {
  return refuse("misuse", operation, "this client is closed; make another one");
}
