import { refuse } from "./error.js";
import { ours, theirs } from "./names.js";
import { Secret } from "./secret.js";

/** The options that are objects with names of ours. */
const NESTED = new Set(["retry", "until"]);

/** Options as the core spells them: `idempotencyKey` is `idempotency_key`. The names of headers are the caller's. */
export function spell(operation, options) {
  const entries = Object.entries(options).map(([name, value]) => {
    // Spelled as the core does, an option would pass by whatever is done here about it.
    if (name.includes("_")) throw refuse("invalid", operation, `\`options\` has an unknown field \`${name}\`; options are spelled like \`${ours(name)}\``, { field: "options" });
    const inner = NESTED.has(name) && value !== null && typeof value === "object" && !Array.isArray(value);
    return [theirs(name), inner ? spell(operation, value) : value];
  });
  return Object.fromEntries(entries);
}

/** JSON of what a caller gave, with the texts of its secrets. What JSON would drop without a word is refused. */
export function encode(operation, field, value) {
  try {
    const text = JSON.stringify(value, function (name, member) {
      if (this[name] instanceof Secret) return this[name].reveal();
      const given = Array.isArray(this) || name === "" ? field : field === "options" ? ours(name) : name;
      if (typeof member === "function" || typeof member === "symbol" || typeof member === "bigint") {
        throw refuse("invalid", operation, `\`${given}\` can't be a ${typeof member}`, { field: given });
      }
      // JSON would make it null, and a limit of nothing is no limit.
      if (typeof member === "number" && !Number.isFinite(member)) {
        throw refuse("invalid", operation, `\`${given}\` must be a finite number, and is ${member}`, { field: given });
      }
      // It may be the id of something else: digits were lost when it was read, or it is beyond what a number holds.
      if ((typeof member === "number" || member instanceof Number) && Number.isInteger(+member) && !Number.isSafeInteger(+member)) {
        const rule = "is a whole number beyond 2^53, which a number of JavaScript does not hold exactly; give an id as text";
        throw refuse("invalid", operation, `\`${given}\` ${rule}`, { field: given });
      }
      return member;
    });
    if (text === undefined) throw refuse("invalid", operation, `\`${field}\` is required`, { field });
    return text;
  } catch (error) {
    throw error.kind ? error : refuse("invalid", operation, `\`${field}\` can't be written as JSON`, { field });
  }
}

/** An object was to be given. No option is null: a limit that came out of a file or a database would be gone without a word. */
export function object(operation, name, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw refuse("invalid", operation, `\`${name}\` must be an object`);
  }
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
