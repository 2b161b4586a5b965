// The core as the package's own code drives it, in Node and in a page: no part of the package's interface, so what wasm-bindgen made
// lies beside this file, of what a page loads and of what Node loads.
const isNode = globalThis.process !== undefined;
const { Client, hostText: ask, initSync } = await import(isNode ? "./bindings-node.mjs" : "./bindings.mjs");

const bytes = async () => (await fetch("/hopline/core.wasm")).arrayBuffer();

/** The file of the package that is tested. */
const installed = async () => {
  const [{ readFileSync }, { createRequire }] = await Promise.all([import("node:fs"), import("node:module")]);
  return readFileSync(createRequire(import.meta.url).resolve("hopline").replace("node.cjs", "node.wasm"));
};

initSync({ module: await (isNode ? installed() : bytes()) });

export const StepKind = { Store: "store", Send: "send", Completed: "completed", Notify: "notify", Wait: "wait" };

/** By step: what it has. */
const MEMBERS = {
  store: ["id", "command", "call"],
  send: ["id", "command", "head", "body", "timeoutMs", "maxBody", "sendBefore"],
  completed: ["command"],
  notify: ["event"],
};

/** The core, which keeps what its last step has, with a method for each command and each answer of a store. */
export class Core extends Client {
  saved = (after = "") => this.act("saved", after);
  resume = (record, options) => this.act("resume", record, options);
  resumeIntent = (intent, options) => this.act("resume_intent", intent, options);
  resumeAll = (options) => this.act("resume_all", "", options);
  settle = (record, happened, became, early) => this.act(happened ? "happened" : early ? "not_happened_early" : "not_happened", record, became);
  forget = (record) => this.act("forget", record);
  done = (id, word, ...now) => this.#answer(id, word, [], undefined, now);
  claimed = (id, names, lengths, data, ...now) => this.#answer(id, "claimed", [...names, ...lengths], data, now);
  busy = (id, data, ...now) => this.#answer(id, "busy", [data?.length ?? -1], data, now);
  listed = (id, names, lengths, data, whose, more, ...now) => this.#answer(id, more ? "more" : "listed", [...names, ...whose, ...lengths], data, now);
  granted = (id, day, ...now) => this.#answer(id, "granted", [day], undefined, now);
  over = (id, day, total, ...now) => this.#answer(id, "over", [day, total], undefined, now);

  #answer(id, word, lines, data, now) {
    this.stored(id, word, lines.join("\n"), data ?? new Uint8Array(), ...now);
  }

  poll(...now) {
    const step = super.poll(...now);
    const [kind, ...given] = Array.isArray(step) ? step : ["wait", step];
    for (const name of ["until", ...Object.values(MEMBERS).flat()]) this[name] = undefined;
    (MEMBERS[kind] ?? ["until"]).forEach((name, at) => (this[name] = given[at] ?? undefined));
    return kind;
  }
}

export const hostText = (question, given) => ask(question, given, "");
export const pageParams = (position, params) => ask("page_params", position, params);
export const pageTurn = (position, facts) => ask("page_turn", position, facts);
