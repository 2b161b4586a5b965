import { refuse } from "./error.js";
import { ours, theirs, strange } from "./names.js";
import { Secret } from "./secret.js";
import { memberOf } from "./words.js";

/** The options that are objects with JavaScript's names. */
const NESTED = new Set(["retry", "until"]);

/** Returns true if JSON keeps all of an object. An instance of a class may keep its state in private members or behind getters. */
function isPlain(object) {
  const prototype = Object.getPrototypeOf(object);
  return Array.isArray(object) || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Headers as `fetch` takes them, as an object: a `Headers`, a `Map` or pairs may be given, too. */
function headersOf(operation, given) {
  if (given === null || typeof given !== "object") return given;
  const isIterable = typeof given[Symbol.iterator] === "function";
  // A value that is not a plain object is refused as it is.
  if (!isIterable && !isPlain(given)) return given;
  const pairs = isIterable ? [...given] : Object.entries(given);
  if (!pairs.every((pair) => Array.isArray(pair) && pair.length === 2)) throw refuse("invalid", operation, "`headers` must be an object, a `Headers`, or pairs of a name and a value", { field: "headers" });
  if (new Set(pairs.map(([name]) => String(name).toLowerCase())).size < pairs.length) throw refuse("invalid", operation, "`headers` has the same name twice", { field: "headers" });
  return Object.fromEntries(pairs);
}

/** Options as the core spells them: `idempotencyKey` is `idempotency_key`. The names of headers are the caller's. */
export function spell(operation, options) {
  const entries = Object.entries(options).map(([name, value]) => {
    // In the core's spelling an option would bypass the checks here.
    if (name.includes("_")) throw refuse("invalid", operation, `\`options\` has an unknown field \`${name}\`${strange(name)}`, { field: "options" });
    const inner = NESTED.has(name) && value !== null && typeof value === "object" && isPlain(value) && !Array.isArray(value);
    return [theirs(name), inner ? spell(operation, value) : name === "headers" ? headersOf(operation, value) : value];
  });
  return Object.fromEntries(entries);
}

/** Writes a caller's value as JSON, with the texts of its secrets. A value that JSON would silently drop or change is refused. */
export function encode(operation, field, value) {
  try {
    const text = JSON.stringify(value, function (name, member) {
      const own = this[name];
      if (own instanceof Secret) return own.reveal();
      const given = Array.isArray(this) || name === "" ? field : field === "options" ? ours(name) : name;
      const fault = faultOf(member, own, Array.isArray(this));
      if (fault) throw refuse("invalid", operation, `\`${given}\` ${fault}`, { field: given });
      return member;
    });
    if (text === undefined) throw refuse("invalid", operation, `\`${field}\` is required`, { field });
    return text;
  } catch (error) {
    throw memberOf(error, "kind") ? error : refuse("invalid", operation, `\`${field}\` can't be written as JSON`, { field });
  }
}

/**
 * The fault of a value that JSON would change or drop: `own` was given, and is `member` by its `toJSON`. A lost limit would be no limit.
 */
function faultOf(member, own, isItem) {
  const type = typeof member;
  if (type === "function" || type === "symbol" || type === "bigint") return `can't be a ${type}`;
  if (type === "number" && !Number.isFinite(member)) return `must be a finite number, and is ${member}`;
  // The number may be the id of another resource: digits were lost when it was read, or it is beyond the exact range.
  if (type === "number" && isRounded(member)) return BEYOND;
  if (type === "undefined" && isItem) return "can't be a list with an item that has no value";
  if (type === "object" && member !== null && !isPlain(member)) return `can't be an instance of \`${nameOf(member)}\`; give a plain object or value`;
  if ((type === "undefined" || member === null) && own !== member) return `can't be this \`${nameOf(own)}\`, which has no value in JSON`;
  return undefined;
}

const nameOf = (object) => String(object.constructor?.name);

const isRounded = (number) => Number.isInteger(number) && !Number.isSafeInteger(number);
const BEYOND = "is a whole number beyond 2^53, which a number of JavaScript does not hold exactly; give an id as text";

/** A name or an id as text. */
export function text(operation, field, value) {
  if (typeof value === "number" && isRounded(value)) throw refuse("invalid", operation, `\`${field}\` ${BEYOND}`, { field });
  return String(value);
}

/** An option that is true or false; false where it is left out. */
export function flag(operation, field, value = false) {
  if (typeof value !== "boolean") throw refuse("invalid", operation, `\`${field}\` must be true or false`, { field });
  return value;
}

/** An object was to be given. No option is null: a limit that came out of a file or a database would be gone without a word. */
export function object(operation, name, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw refuse("invalid", operation, `\`${name}\` must be an object`);
  }
  if (!isPlain(value)) throw refuse("invalid", operation, `\`${name}\` must be a plain object, and is an instance of \`${nameOf(value)}\``, { field: name });
  const empty = name === "options" && Object.keys(value).find((option) => value[option] === null);
  if (empty) throw refuse("invalid", operation, `\`${empty}\` must not be null; leave it out instead`, { field: empty });
}

/** The signal among options. */
export function signalOf(operation, options) {
  object(operation, "options", options);
  const { signal } = options;
  if (signal !== undefined && typeof signal?.addEventListener !== "function") {
    throw refuse("invalid", operation, "`signal` must be an AbortSignal", { field: "signal" });
  }
  return signal;
}

/** The signal among options, and what the core is told of the others. */
export function optionsOf(operation, options) {
  const signal = signalOf(operation, options);
  const { signal: _, ...rest } = options;
  return { signal, text: encode(operation, "options", spell(operation, rest)) };
}
