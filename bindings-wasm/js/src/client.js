import { refusal } from "./ask.js";
import { Registry } from "./dropped.js";
import { refuse } from "./error.js";
import { disposable, hide } from "./hide.js";
import { host } from "./host.js";
import { flag, object, optionsOf, text } from "./values.js";
import { placeOf } from "./words.js";

/** A client without references releases its names, and its warning names the place where it was made. */
const dropped = new Registry(({ engine, place }) => {
  if (engine.isUsed) host.warn(`a client of Hopline${place ? ` that was made at ${place}` : ""} was not closed; it sends nothing more, and what it held is free`);
  engine.close().catch(() => {});
});
/** By the objects that still work for a client: the client, which is not dropped before them. */
const clients = new WeakMap();

/** The common methods of the clients of both APIs. hopline.d.ts documents them. */
export class Client {
  #engine;
  /** Makes the caller's handle of a result with a phase: a session, an order. */
  #handle;

  constructor(engine, handle) {
    this.#engine = engine;
    this.#handle = handle;
    const here = new Error();
    engine.takeOver(here.stack);
    dropped.register(this, { engine, place: placeOf(here) }, this);
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  async saved() {
    const all = [];
    let after;
    do {
      const page = await this.#engine.command("saved", (core) => core.act("saved", after ?? ""));
      all.push(...page.entries);
      ({ after } = page);
    } while (after !== undefined);
    return all;
  }

  async resume(record, options) {
    return this.#resume((core, given) => core.act("resume", String(record), given), options);
  }

  async resumeIntent(intent, options) {
    if (typeof intent !== "string" || intent === "") throw refuse("invalid", "resume", "`intent` must be the name of an intent", { field: "intent" });
    const start = (core, given) => {
      // An intent that can't be written as it is would become another name.
      if (!intent.isWellFormed()) throw refusal("resume", "not_text", { field: "intent" });
      return core.act("resume_intent", intent, given);
    };
    return (await this.#resume(start, options)) ?? undefined;
  }

  async resumeAll(options = {}) {
    const { signal, text } = optionsOf("resume_all", options);
    return this.#engine.resumeAll((core) => core.act("resume_all", "", text), signal, this.handle());
  }

  async settle(record, settlement, options = {}) {
    object("settle", "options", options);
    const became = options.became === undefined ? undefined : text("settle", "became", options.became);
    if (settlement !== "happened" && settlement !== "not_happened") {
      throw refuse("invalid", "settle", "`settlement` must be one of happened, not_happened");
    }
    const isEarly = flag("settle", "early", options.early) && settlement === "not_happened";
    const what = settlement + (isEarly ? "_early" : "");
    return this.#engine.command("settle", (core) => core.act(what, String(record), became));
  }

  async forget(record) {
    return this.#engine.command("forget", (core) => core.act("forget", String(record)));
  }

  async reconcile(record, options) {
    return this.call("reconcile", { record: String(record) }, options);
  }

  async request(method, path, params = {}, options) {
    object("request", "parameters", params);
    return this.call("request", { ...params, method, path }, options);
  }

  events(options = {}) {
    return this.#kept(this.#engine.events(options));
  }

  onEvent(listener) {
    return this.#engine.onEvent(listener);
  }

  close() {
    dropped.unregister(this);
    return this.#engine.close();
  }

  /** Every operation of the table is called here. A client is not dropped while it waits. */
  async call(operation, params, options) {
    return await this.#engine.call(operation, params, options);
  }

  /** Calls an operation that waits for a session or an order. */
  wait(operation, params, options, more) {
    return this.#waited(this.#engine.wait(operation, params, options, this.handle(more)), more);
  }

  /** Every list of the table is walked here. */
  walk(list, params, options) {
    return this.#kept(this.#engine.walk(list, params, options));
  }

  /** Makes the caller's handle of a result with a phase, which may need its client. */
  handle(more) {
    return (given) => this.#handle(this, { ...given, ...more });
  }

  async #resume(start, options = {}) {
    const { signal, text } = optionsOf("resume", options);
    return this.#waited(this.#engine.resume((core) => start(core, text), signal, this.handle()));
  }

  /** Adds the handle to the error for a session that is not usable at its deadline. */
  async #waited(result, more) {
    try {
      return await result;
    } catch (error) {
      if (error.kind === "not_ready") {
        const { session_id, raw } = error;
        const { session_type, status } = raw ?? {};
        hide(error, "session", this.handle(more)({ facts: { session_id, session_type }, phase: "pending", data: { session_id, session_type, status } }));
      }
      throw error;
    }
  }

  #kept(work) {
    clients.set(work, this);
    return work;
  }
}

/** Gives the client of an API its methods: one for each operation, and one for each list that is walked. */
export function equip(client, operations, walks) {
  const define = (name, value) => Object.defineProperty(client.prototype, name, { value, writable: true, configurable: true });
  for (const [method, { operation }] of Object.entries(operations)) {
    define(method, { [method](...given) { return this.call(operation, ...given); } }[method]);
  }
  for (const [method, list] of Object.entries(walks)) {
    define(method, { [method](...given) { return this.walk(list, ...given); } }[method]);
  }
  return disposable("close", client);
}
