import { refuse } from "./error.js";
import { hide, keepHidden } from "./hide.js";
import { ours } from "./names.js";
import { secrets } from "../gen/operations.js";

/**
 * Parses what the service answered, or its view under the names of the table, and hides in it what must not be printed. It
 * stays readable by its name. What has the name of a secret is one, but where `plain` has a member of that name. Where the core saw
 * nothing that may be one, nothing is looked at.
 */
export function parse(raw, view, more, plain, mayHide = true) {
  const data = JSON.parse(view ?? raw);
  if (data === null || typeof data !== "object") return data;
  // A list of its own instead of recursion: how deep an answer goes is for the service to say.
  const rest = mayHide ? [[data, plain]] : [];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [value, shown] = next;
    const isList = Array.isArray(value);
    for (const [name, member] of Object.entries(value)) {
      const below = isList ? shown : shown?.[name];
      if (!isList && below === undefined && secrets.has(name.replaceAll("_", "").toLowerCase())) keepHidden(value, name, member);
      if (member !== null && typeof member === "object") rest.push([member, below]);
    }
  }
  for (const [name, value] of Object.entries({ raw, ...more })) {
    if (value === undefined || Object.hasOwn(data, name)) continue;
    // A list has to stay one.
    if (Array.isArray(data)) hide(data, name, value);
    else keepHidden(data, name, value);
  }
  return data;
}

/** The options that are objects with names of ours. */
const NESTED = new Set(["retry", "until"]);

/** Options as the core spells them: `idempotencyKey` is `idempotency_key`. The names of headers are the caller's. */
export function spell(operation, options) {
  const entries = Object.entries(options).map(([name, value]) => {
    // Spelled as the core does, an option would pass by whatever is done here about it.
    if (name.includes("_")) throw refuse("invalid", operation, `\`options\` has an unknown field \`${name}\`; options are spelled like \`${ours(name)}\``, { field: "options" });
    const inner = NESTED.has(name) && value !== null && typeof value === "object" && !Array.isArray(value);
    return [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), inner ? spell(operation, value) : value];
  });
  return Object.fromEntries(entries);
}

/** JSON of what a caller gave. What JSON would drop without a word is refused. */
export function encode(operation, field, value) {
  try {
    const text = JSON.stringify(value, (name, member) => {
      if (typeof member === "function" || typeof member === "symbol" || typeof member === "bigint") {
        const given = field === "options" ? ours(name) : name || field;
        throw refuse("invalid", operation, `\`${given}\` can't be a ${typeof member}`, { field: given });
      }
      return member;
    });
    if (text === undefined) throw refuse("invalid", operation, `\`${field}\` is required`, { field });
    return text;
  } catch (error) {
    throw error.kind ? error : refuse("invalid", operation, `\`${field}\` can't be written as JSON`, { field });
  }
}

/** An object was to be given. */
export function object(operation, name, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw refuse("invalid", operation, `\`${name}\` must be an object`);
  }
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
