import { asked, refuse } from "./error.js";
import { encode, object, signalOf, spell } from "./values.js";

/** What the clients of both APIs can do. hopline.d.ts documents it. */
export class Client {
  #engine;

  constructor(engine) {
    this.#engine = engine;
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  async saved() {
    return this.#engine.askAll("saved", (core) => core.savedList());
  }

  async restored() {
    await this.#engine.askAll("restored", () => {});
    return this.#engine.restored;
  }

  async resume(what, options = {}) {
    const signal = signalOf("resume", options);
    const { signal: _, ...rest } = options;
    const given = encode("resume", "options", spell("resume", rest));
    if (what === null || typeof what !== "object") return this.#engine.resume((core) => core.resume(String(what), given), signal);
    const { intent } = what;
    if (typeof intent !== "string" || intent === "") throw refuse("invalid", "resume", "`intent` must be the name of an intent", { field: "intent" });
    return this.#engine.resume((core) => core.resumeIntent(intent, given), signal, intent);
  }

  async resumeAll(options = {}) {
    const signal = signalOf("resume_all", options);
    const results = await this.#engine.askAll("resume_all", (core, _, wait) => [...core.resumeAll()].map(wait), signal);
    return Promise.allSettled(results.map((result) => this.#engine.follow(result, signal)));
  }

  async settle(record, settlement, options = {}) {
    object("settle", "options", options);
    const became = options.became == null ? undefined : String(options.became);
    await this.#engine.askAll("settle", () => {});
    if (settlement !== "happened" && settlement !== "not_happened") {
      throw refuse("invalid", "settle", "`settlement` must be one of happened, not_happened");
    }
    const done = await this.#engine.ask("settle", (core) => asked(() => core.settle(String(record), settlement === "happened", became)));
    await this.#engine.letGo();
    return done;
  }

  async forget(record) {
    const done = await this.#engine.askAll("forget", (core) => core.forget(String(record)));
    await this.#engine.letGo();
    return done;
  }

  async reconcile(record, options) {
    return this.call("reconcile", { record: String(record) }, options);
  }

  async request(method, path, params = {}, options) {
    object("request", "parameters", params);
    return this.call("request", { ...params, method, path }, options);
  }

  events(options = {}) {
    return this.#engine.events(options);
  }

  close() {
    return this.#engine.close();
  }

  /** Every operation of the table is called here. */
  call(operation, params, options) {
    return this.#engine.call(operation, params, options);
  }

  /** Every list of the table is walked here. */
  walk(list, params, options) {
    return this.#engine.walk(list, params, options);
  }
}

if (Symbol.asyncDispose) {
  Object.defineProperty(Client.prototype, Symbol.asyncDispose, { value: Client.prototype.close });
}

/** Gives the client of an API its methods: one for each operation, and one for each list that is walked. */
export function equip(client, operations, walks) {
  const define = (method) => {
    for (const [name, value] of Object.entries(method)) Object.defineProperty(client.prototype, name, { value, writable: true, configurable: true });
  };
  for (const [method, { operation }] of Object.entries(operations)) {
    define({
      [method](params, options) {
        return this.call(operation, params, options);
      },
    });
  }
  for (const [method, list] of Object.entries(walks)) {
    define({
      [method](params, options) {
        return this.walk(list, params, options);
      },
    });
  }
  return client;
}
