// What surrounds the client of one case: its clocks, its store, what is out, and the names of all of it.
import { Core, StepKind } from "hopline";

import { fail, short } from "./matching.mjs";

const BEGIN = { unix: 1750000000000, monotonic: 1000000 };

/** Names that a script gives to what the client makes up: one name, one value. */
class Names {
  #values = new Map();

  bind(name, value) {
    const bound = this.#values.get(name);
    if (bound === value) return;
    const other = [...this.#values].find(([, known]) => known === value)?.[0];
    if (bound !== undefined) fail(`expected \`${name}\` (${bound}), came ${other ?? value}`);
    if (other !== undefined) fail(`expected a new value for \`${name}\`, came that of \`${other}\``);
    this.#values.set(name, value);
  }

  has(name) {
    return this.#values.has(name);
  }

  value(name) {
    return this.#values.get(name) ?? fail(`nothing is named \`${name}\` yet`);
  }

  /** Every text that has a name is replaced by it. */
  in(value) {
    if (typeof value === "string") return [...this.#values].find(([, known]) => known === value)?.[0] ?? value;
    if (Array.isArray(value)) return value.map((item) => this.in(item));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.in(member)]));
  }
}

export class World {
  commands = new Map();
  records = new Names();
  keys = new Names();
  /** By name: the steps that a script named. */
  steps = new Map();
  /** The steps that were not answered yet. */
  out = new Set();
  store = new Map();
  #saves = new Map();
  /** Saves that nobody confirmed: they may be on the disk. */
  #unsure = new Map();
  #sent = new Map();
  /** Where each walk stopped; nothing for one that is over. */
  walks = new Map();
  #crashes = 0;

  constructor(script) {
    this.options = overlay({ base_url: "https://api.example/v1", api_key: "canary-key" }, script.client ?? {});
    this.client = new Core(JSON.stringify(this.options), entropy(script.entropy, 0));
    this.now = { ...BEGIN, ...script.now };
  }

  get at() {
    return [this.now.unix, this.now.monotonic];
  }

  /** The next step that is no notification. */
  next() {
    for (;;) {
      const step = this.client.poll(...this.at);
      if (step !== StepKind.Notify) return step;
      noSecret("an event", JSON.stringify(this.client.event));
    }
  }

  /** Nothing may be left to do; until when. */
  drained() {
    const step = this.next();
    if (step !== StepKind.Wait) fail(`expected nothing more to do, came ${this.show(step)}`);
    return this.client.until;
  }

  advance(shift) {
    const by = typeof shift === "number" ? { unix: shift, monotonic: shift } : shift;
    this.now = { unix: this.now.unix + by.unix, monotonic: this.now.monotonic + by.monotonic };
  }

  /** A Save or a deletion is given to the store. */
  saveGiven(name, step) {
    if (step !== StepKind.Save) fail(`expected a save or delete of \`${name}\`, came ${this.show(step)}`);
    const { id, record, data } = this.client;
    this.records.bind(name, record);
    if (data !== undefined) noSecret("a record", data);
    this.#unsure.set(record, data);
    this.#saves.set(id, [record, data]);
    this.out.add(id);
    return { id, data };
  }

  /** The store answers. */
  saveAnswered(id, word) {
    this.resolve(id, () => {
      if (word === "failed") this.client.fail(id, "store", "never", ...this.at);
      else if (word === "saved") this.client.saved(id, ...this.at);
      else throw new Error(`\`${word}\` is no answer of a store`);
    });
    if (word !== "saved" || !this.#saves.has(id)) return;
    const [record, data] = this.#saves.get(id);
    this.#saves.delete(id);
    this.#unsure.delete(record);
    this.#put(record, data);
  }

  resolve(id, answer) {
    try {
      answer();
    } catch (error) {
      fail(`the answer was refused: ${error.message}`);
    }
    this.out.delete(id);
  }

  #put(record, data) {
    if (data === undefined) this.store.delete(record);
    else this.store.set(record, data);
  }

  /** One key, one request: whatever a case is about. */
  sameKeySameBytes(key, request) {
    const before = this.#sent.get(key) ?? request;
    if (before !== request) fail(`the same key was sent with other bytes: ${before}, then ${request}`);
    this.#sent.set(key, request);
  }

  /** The process dies and another one begins. */
  crash({ entropy: bytes, client = {}, also = [], after }) {
    this.#crashes += 1;
    overlay(this.options, client);
    this.client.free();
    this.client = new Core(JSON.stringify(this.options), entropy(bytes, this.#crashes));
    for (const each of [this.commands, this.steps, this.out, this.#saves]) each.clear();
    for (const name of also) {
      const record = this.records.value(name);
      if (!this.#unsure.has(record)) fail(`every Save of \`${name}\` was answered \`saved\``);
      this.#put(record, this.#unsure.get(record));
    }
    this.#unsure.clear();
    if (after !== undefined) this.advance(after);
  }

  /** A record as the store holds it. */
  stored(name) {
    const record = this.records.value(name);
    return [record, this.store.get(record) ?? fail(`the store holds no \`${name}\``)];
  }

  /** Puts a record into the store behind the client's back. */
  putByHand(name, { text, change }) {
    const data = text ?? JSON.stringify(overlay(JSON.parse(this.stored(name)[1]), change));
    if (!this.records.has(name)) this.records.bind(name, name);
    this.store.set(this.records.value(name), data);
  }

  /** A JSON value of the client's, with the names of the script in it. */
  named(value) {
    return this.keys.in(this.records.in(value));
  }

  command(name) {
    return this.commands.get(name) ?? fail(`no command is named \`${name}\``);
  }

  nameCommand(name, command) {
    if (this.commands.has(name)) fail(`a command is named \`${name}\` already`);
    this.commands.set(name, command);
  }

  nameStep(name, id) {
    if (name === undefined) return;
    if (this.steps.has(name)) fail(`a step is named \`${name}\` already`);
    this.steps.set(name, id);
  }

  /** A step in a failure message. */
  show(step) {
    const { record, data, method, url, body, command, until } = this.client;
    const shown = {
      [StepKind.Save]: `a save of ${record}: ${data ?? "deleted"}`,
      [StepKind.Send]: `a send of ${method} ${url} ${new TextDecoder().decode(body)}`,
      [StepKind.Completed]: `the end of command ${command}`,
      [StepKind.Wait]: `a wait until ${until}`,
    };
    return shown[step];
  }
}

/** No text that begins like this may show in a record, an event or an error. */
export function noSecret(what, text) {
  if (text.includes("canary")) fail(`${what} holds a secret: ${short(text)}`);
}

/** Null takes nothing away here: it is a value like any other, and means the default to the options. */
function overlay(base, over) {
  for (const [name, value] of Object.entries(over)) {
    const inner = [base[name], value].every((each) => each !== null && typeof each === "object" && !Array.isArray(each));
    if (inner) overlay(base[name], value);
    else base[name] = value;
  }
  return base;
}

/** 16 bytes: as given, or the number of the crash in every byte. */
function entropy(digits, crash) {
  return digits === undefined ? new Uint8Array(16).fill(crash) : bytes(digits);
}

/** The bytes of hexadecimal digits. */
export function bytes(digits) {
  return Uint8Array.from(digits.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
