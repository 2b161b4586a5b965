// The surroundings of the client of one case: its clocks, its store, what is out, and the names of all of it.
import { Core, StepKind } from "../lib/core.mjs";

import { fail, short } from "./matching.mjs";
import { Store, callOf } from "./store.mjs";

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

  /** Where a name comes in the order of their first mentions; what has none comes last. */
  place(name) {
    const at = [...this.#values.keys()].indexOf(name);
    return at < 0 ? Infinity : at;
  }

  /** Every text that has a name is replaced by it. People see the name and the version of a record. */
  in(value) {
    if (typeof value === "string") {
      const without = value.slice(0, Math.max(value.lastIndexOf("."), 0));
      return [...this.#values].find(([, known]) => known === value || known === without)?.[0] ?? value;
    }
    if (Array.isArray(value)) return value.map((item) => this.in(item));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.in(member)]));
  }
}

export class World {
  commands = new Map();
  records = new Names();
  keys = new Names();
  /** The amounts that count under the day's cap. */
  entries = new Names();
  /** By name: the steps that a script named. */
  steps = new Map();
  /** The steps that were not answered yet. */
  out = new Set();
  store = new Store();
  /** By step: what each call of the store asks that is out. */
  #calls = new Map();
  #sent = new Map();
  /** Where each walk stopped; nothing for one that is over. */
  walks = new Map();
  #crashes = 0;

  constructor(script) {
    this.options = overlay({ base_url: "https://api.example/v1", api_key: "canary-key", store: true }, script.client ?? {});
    this.client = new Core(given(this.options), entropy(script.entropy, 0));
    this.now = { ...BEGIN, ...script.now };
  }

  get at() {
    return [this.now.unix, this.now.monotonic];
  }

  /**
   * The next step that is no notification. A call of the store that the script need not name is answered, but one of the kind that it
   * names next.
   */
  next(kind) {
    for (;;) {
      const step = this.#nextTold();
      if (step !== StepKind.Store || !this.answersItself() || this.client.call[0] === kind) return step;
      this.answerItself();
    }
  }

  #nextTold() {
    for (;;) {
      const step = this.client.poll(...this.at);
      if (step !== StepKind.Notify) return step;
      noSecret("an event", JSON.stringify(this.client.event));
    }
  }

  /** True if the store answers the call that the client gives where the script does not name it. */
  answersItself() {
    return !["put", "delete"].includes(this.client.call[0]);
  }

  answerItself() {
    const { id } = this.client;
    this.#answer(id, this.store.call(callOf(this.client), this.now.unix));
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

  /** The store is asked what the script names next: gives the call. */
  asked(kind, what) {
    const step = this.next(kind);
    if (step !== StepKind.Store || this.client.call[0] !== kind) fail(`expected ${what}, came ${this.show(step)}`);
    const [{ id }, call] = [this.client, callOf(this.client)];
    if (call.data) noSecret("a record", text(call.data));
    this.store.doubt(call);
    this.#calls.set(id, call);
    this.out.add(id);
    return { id, ...call };
  }

  /** The store answers. */
  storeAnswered(id, word) {
    const call = this.#calls.get(id);
    const names = call?.names ?? (call?.name === undefined ? [] : [call.name]);
    const kinds = { done: ["done"], claimed: ["claimed"], listed: ["listed"], counted: ["granted", "over"] }[word];
    let answer;
    if (kinds) {
      answer = call ? this.store.call(call, this.now.unix) : { done: ["done"] };
      if (!kinds.some((kind) => kind in answer)) fail(`the store would answer ${Object.keys(answer)}`);
    } else if (word === "busy") answer = { busy: [this.store.data(names[0])] };
    else if (word === "over") answer = { over: [this.store.today(this.now.unix), "0"] };
    else if (["failed", "never", "lost"].includes(word)) answer = { done: [word] };
    else throw new Error(`\`${word}\` is not an answer of a store`);
    if (word === "lost") this.store.takeAway(names);
    this.#answer(id, answer);
    this.#calls.delete(id);
  }

  #answer(id, answer) {
    const [[method, given]] = Object.entries(answer);
    this.resolve(id, () => this.client[method](id, ...given, ...this.at));
  }

  resolve(id, answer) {
    try {
      answer();
    } catch (error) {
      fail(`the answer was refused: ${error.message}`);
    }
    this.out.delete(id);
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
    this.client = new Core(given(this.options), entropy(bytes, this.#crashes));
    for (const each of [this.commands, this.steps, this.out, this.#calls]) each.clear();
    this.store.crash(also.map((name) => this.records.value(name)));
    if (after !== undefined) this.advance(after);
  }

  /** Puts a record into the store behind the client's back. */
  plant(name, given, change) {
    const record = this.records.value(name);
    const data = this.store.data(record);
    if (given === undefined && !data) fail(`the store holds no \`${name}\``);
    const planted = given ?? JSON.stringify(overlay(JSON.parse(text(data)), change));
    this.store.plant(record, new TextEncoder().encode(planted));
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
    const { call, head, body, command, until } = this.client;
    const shown = {
      [StepKind.Store]: `a call of the store, ${short(call)}`,
      [StepKind.Send]: `a send of ${head} ${text(body)}`,
      [StepKind.Completed]: `the end of command ${command}`,
      [StepKind.Wait]: `a wait until ${until}`,
    };
    return shown[step];
  }
}

/** Bytes as text. */
export const text = (bytes) => new TextDecoder().decode(bytes);

/** No text that begins like this may show in a record, an event or an error. */
export function noSecret(what, text) {
  if (text.includes("canary")) fail(`${what} holds a secret: ${short(text)}`);
}

/** The options of a client, without those that null has taken away. */
const given = (options) => JSON.stringify(Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null)));

/** Null takes nothing away here: it is a value like any other. */
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
