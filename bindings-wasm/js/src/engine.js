import { answer } from "./answers.js";
import { isHere, refusal } from "./ask.js";
import { lettingOthers } from "./clock.js";
import { asked, heed, read, refuse } from "./error.js";
import { Listeners } from "./events.js";
import { host } from "./host.js";
import { ours } from "./names.js";
import { Walk } from "./pages.js";
import { runtime } from "./runtime.js";
import { takeOver } from "./reload.js";
import { revealed } from "./secret.js";
import { METHODS } from "./stores.js";
import { encode, object, optionsOf, signalOf, spell } from "./values.js";

/** The `fetch` at the time of loading. A program that replaces it later answers for its own one. */
const ownFetch = globalThis.fetch;

/** The methods of a log. */
const LEVELS = ["debug", "info", "warn"];

/** The stores that serve a client, of every copy of this package. */
const serving = (globalThis[Symbol.for("hopline.serving")] ??= new WeakSet());

/** Runs the calls of one account, whatever its API. The engine knows nothing of its client, which may be dropped. */
export class Engine {
  #driver;
  #store;
  #serves = false;
  /** Makes the core; it must be loaded. */
  #make;
  /** While the core is being loaded: the promise of that. */
  #beginning;
  #closing;
  /** Additions to errors: the base URL, and the missing option if a request had no key or login and was refused. */
  #told;
  #listeners = new Listeners();
  /** The functions to call when the client is closed. */
  #ends = new Set();
  /** While clients end that the same code made before it was evaluated anew: the promise of that. */
  #before;
  /** What tells those clients. */
  #own;
  /** Called with each session in an answer, and its operation. */
  heard = () => {};

  constructor(api, options = {}) {
    object("client", "options", options);
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const environment = host.environment(api, given);
    const { fetch: chosen, store, log, ...rest } = { ...environment, ...given };
    const variable = (option) => (option in environment && !(option in given) ? host.variable(api, option) : undefined);
    if (typeof (chosen ?? globalThis.fetch) !== "function") throw refuse("invalid", "client", "`fetch` must be a function");
    if (store !== undefined && !METHODS.every((name) => typeof store?.[name] === "function")) {
      throw refuse("invalid", "client", `\`store\` must be a store, whose ${METHODS.join(", ")} are functions`);
    }
    if (log !== undefined && !LEVELS.some((level) => typeof log?.[level] === "function")) {
      throw refuse("invalid", "client", `\`log\` must be an object with a function for each level that it takes, of ${LEVELS.join(", ")}, such as \`console\``, { field: "log" });
    }
    if ("api" in rest) throw refuse("invalid", "client", "`options` has an unknown field `api`", { field: "options" });
    if (rest.baseUrl === undefined) throw refuse("invalid", "client", `the base URL is missing: give \`baseUrl\`${host.elsewhere(api)}`, { field: "baseUrl" });
    rest.baseUrl = host.resolve(rest.baseUrl);
    this.#told = { place: rest.baseUrl, unauthorized: host.unauthorized(api, rest) };
    const spelled = encode("client", "options", { ...spell("client", rest), api, store: store !== undefined, late_calls: store?.lateCalls === true });
    const secrets = () => [rest.apiKey, rest.token, rest.username, rest.password].map(revealed).filter((secret) => typeof secret === "string");
    let known;
    const http = () => {
      // A test may replace the program's `fetch` after the client was made, and expect that nothing is sent.
      const fetch = chosen ?? globalThis.fetch;
      if (known?.fetch === fetch) return known;
      // A `fetch` of the caller's own may have done anything before it failed.
      const isGiven = fetch !== ownFetch;
      const failures = typeof fetch === "function" ? !isGiven && host.failures : { before: () => ({ kind: "other", sent: "never" }) };
      return (known = { fetch, isGiven, connection: host.connections(fetch, isGiven), secrets, ...failures });
    };
    this.#make = () => {
      const core = asked(() => new runtime.Core(spelled, crypto.getRandomValues(new Uint8Array(16))), { given: options, variable });
      this.#driver = runtime.drive(core, http, store, this.#listeners);
    };
    this.#store = store;
    this.#own = { api, account: rest.account, store };
    if (log !== undefined) this.onEvent((event) => log[event.level]?.(`hopline: ${ours(event.operation)}: ${event.event}`, event));
    // The first call says what is missing here, such as while a server renders a page.
    if (host.waits(rest.baseUrl)) return;
    // The core is loaded while the program goes on. If it is loaded already, wrong options are refused at once.
    if (isHere()) this.#make();
  }

  /** Takes over from the clients that the same code made before it was evaluated anew; `stack` says where that is. */
  takeOver(stack) {
    this.#before = takeOver({ ...this.#own, stack }, this);
  }

  /** The base URL of the service. */
  get service() {
    return this.#told.place;
  }

  /** Asks the core a question now; `undefined` before it is loaded, and once the client is closed. */
  peek(question) {
    return this.#closing ? undefined : this.#driver?.ask("peek", question);
  }

  /**
   * Asks the core a question that is answered at once. `question` takes the core, the time, and a function that returns the result of a
   * command.
   */
  async ask(operation, question, signal) {
    await this.usable(operation);
    return this.#driver.ask(operation, question, signal);
  }

  /** Runs an operation, and returns its answer. */
  async call(operation, params, options) {
    return this.#answer(await this.#start(operation, params, options), operation);
  }

  /** The answer of a command. */
  async answer(result, signal, operation) {
    return this.#answer(this.#read(await result, signal), operation);
  }

  /** Runs an operation that waits for a session or an order, and returns that as `handle` makes it. */
  async wait(operation, params, options, handle) {
    return this.#given(await this.#start(operation, params, options), handle);
  }

  /** Runs a command about the store's entries, and returns its answer. */
  async command(operation, start, signal) {
    return JSON.parse((await this.#run(operation, start, signal)).raw);
  }

  /** Resumes by a command: returns a session or an order as `handle` makes it, or the answer; `null` if there is nothing. */
  async resume(start, signal, handle) {
    return this.#given(await this.#run("resume", start, signal), handle);
  }

  /** Resumes everything that can be resumed, and returns the result of each. */
  async resumeAll(start, signal, handle) {
    const { raw, parts } = await this.#run("resume_all", start, signal);
    return JSON.parse(raw).map((command) => {
      try {
        return { status: "fulfilled", value: this.#given(this.#read(this.#driver.take(command, parts?.get(command)), signal), handle) };
      } catch (reason) {
        return { status: "rejected", reason };
      }
    });
  }

  /** A walk through a list. */
  walk(list, params = {}, options = {}) {
    const { operation } = list;
    object(operation, "options", options);
    const { position, maxPages, ...rest } = options;
    const page = async (of) => {
      // The question for the parameters needs the core.
      await heed(operation, signalOf(operation, rest), () => this.usable(operation));
      const taken = await this.#start(operation, JSON.parse(of(encode(operation, "parameters", params))), rest);
      return { page: answer(taken), facts: taken.facts };
    };
    return new Walk(list, page, { position, maxPages });
  }

  events(options) {
    const signal = signalOf("events", options);
    if (this.#closing) throw refusal("events", "closed");
    return this.#listeners.listen(signal);
  }

  onEvent(listener) {
    return this.#listeners.call(listener);
  }

  /** Calls the listeners with an event. */
  note(event) {
    this.#listeners.note(event);
  }

  close() {
    if (!this.#closing) {
      let ended;
      this.#closing = new Promise((resolve) => (ended = resolve));
      ended(this.#end());
    }
    return this.#closing;
  }

  get isClosing() {
    return this.#closing !== undefined;
  }

  /** Calls a function when the client is closed, unless the returned function is called before. */
  atEnd(work) {
    this.#ends.add(work);
    return () => this.#ends.delete(work);
  }

  /** True if the engine has begun any work. */
  get isUsed() {
    return this.#serves;
  }

  /** Nothing begins from the turn on in which this is called. */
  async #end() {
    try {
      await this.#driver?.close();
      await this.#beginning?.catch(() => {});
    } finally {
      if (this.#serves) serving.delete(this.#store);
      this.#listeners.close();
      for (const work of this.#ends) work();
    }
  }

  /** Waits until the client can be used, unless it is closed. A core that can't be loaded is tried again by the next call. */
  async usable(operation) {
    if (!this.#driver) await (this.#beginning ??= this.#begin().finally(() => (this.#beginning = undefined)));
    if (this.#closing) return lettingOthers(refusal(operation, "closed"));
    await this.#before;
    if (!this.#serves) this.#serve(operation);
  }

  /** A store knows one owner of names: the client that it serves. */
  #serve(operation) {
    if (this.#store && serving.has(this.#store)) throw refusal(operation, "store_in_use");
    if (this.#store) serving.add(this.#store);
    this.#serves = true;
    this.#driver.serve();
  }

  async #begin() {
    await host.load();
    if (!this.#closing) this.#make();
  }

  async #start(operation, params, options) {
    if (params !== undefined) object(operation, "params", params);
    const given = params === undefined ? "{}" : encode(operation, "parameters", params);
    const { signal, text } = options === undefined ? { text: "{}" } : optionsOf(operation, options);
    return this.#run(operation, (core) => core.start(operation, given, text), signal, { called: operation, given: options });
  }

  /** Runs the command that `start` starts, and returns its answer. */
  async #run(operation, start, signal, more) {
    // The core is loaded, as it is for every call but the first.
    const isUsable = !signal && this.#serves && !this.#closing;
    if (!isUsable) await heed(operation, signal, () => this.usable(operation));
    return this.#read(await this.#driver.run(operation, start, signal), signal, more);
  }

  /** Returns the answer of a command, or throws its error. */
  #read({ taken, parts, ...causes }, signal, more) {
    const [how, facts, raw, phase, view, type, hasUndocumented] = taken;
    if (how === "failed") throw read(facts, { ...causes, ...this.#told, reason: signal?.reason, ...more });
    return { facts, raw, view, phase: phase ?? undefined, type, hasUndocumented, parts };
  }

  #answer(taken, operation) {
    const data = answer(taken);
    if (taken.type === "Session" && data) this.heard(data, operation);
    return data;
  }

  #given(taken, handle) {
    const [data, { facts, phase }] = [this.#answer(taken), taken];
    return phase === undefined ? data : handle({ data, facts: JSON.parse(facts), phase });
  }
}
