import { optionNames } from "../gen/options.js";

/*
 * The core spells options as the service spells its fields, `max_body`; here they are `maxBody`. Messages about them use the caller's
 * spelling.
 */

/** The options of more than one word. Parameters and answers are the service's, and keep its spelling. */
const OPTIONS = new Set(optionNames);

/** Adds further options. */
export const alsoOptions = (names) => names.forEach((name) => OPTIONS.add(name));

/** A name of the core in JavaScript's spelling. */
export const ours = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** A sentence of the core with the names of options in JavaScript's spelling. */
export const optionsIn = (told) => told.replace(/`([\w.]+)`/g, (all, name) => (OPTIONS.has(name) ? `\`${ours(name)}\`` : all));

/** A name of JavaScript's in the core's spelling. */
export const theirs = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The options that may be meant by another name. */
const [RETRY, ONE_WORD] = [
  ["attempts", "timeoutMs", "windowMs", "retryPaid", "backoffMs", "throttledBackoffMs", "maxBackoffMs", "conflictMs"],
  ["account", "attempts", "credentials", "fetch", "headers", "intent", "keep", "log", "password", "position", "product", "retry", "signal", "store", "token", "until", "username"],
];
/** Their names in other packages. */
const ELSEWHERE = { timeout: "timeoutMs", retries: "attempts", maxRetries: "attempts", maxAttempts: "attempts", key: "apiKey", url: "baseUrl", logger: "log", maxPrice: "maxUnitPrice", dailyCap: "dailyCapUsd" };

/** The addition about an unknown option: the one of them that may be meant. */
export function meant(name, isOfClient, all = [...ONE_WORD, ...[...OPTIONS].map(ours)]) {
  const plain = name.toLowerCase();
  const likely = all.includes(ELSEWHERE[name]) && Object.hasOwn(ELSEWHERE, name) ? ELSEWHERE[name] : all.find((one) => one.toLowerCase() === plain) ?? all.find((one) => isNear(one.toLowerCase(), plain));
  if (isOfClient && RETRY.includes(likely)) return `; of a client it is \`retry.${likely}\``;
  return likely === undefined || likely === name ? "" : `; did you mean \`${likely}\`?`;
}

/** The addition about an option in the service's spelling: an option of that name, or a parameter, which is no option. */
export const strange = (name) => (OPTIONS.has(name) ? `; options are spelled like \`${ours(name)}\`` : "; parameters of the request are members of the argument before");

/** Returns true if one letter more, less or another makes one word of the other. */
function isNear(one, other) {
  if (Math.min(one.length, other.length) < 4 || Math.abs(one.length - other.length) > 1) return false;
  let [before, after] = [0, 0];
  while (before < one.length && one[before] === other[before]) before += 1;
  const shortest = Math.min(one.length, other.length);
  while (after < shortest - before && one.at(-1 - after) === other.at(-1 - after)) after += 1;
  return Math.max(one.length, other.length) - before - after <= 1;
}

const each = (table, row) => Object.fromEntries(Object.entries(table).map(([name, told]) => [name, row(name, told)]));

/** The requests of each method of an API, of which the table has the verb and the path. */
export const rows = (api, table) =>
  each(table, (name, told) => {
    const [method, path] = told.split(" ");
    return { api, operation: theirs(name), method, path };
  });

/** The walks of an API, of which the table has the place of the items in a page. */
export const walks = (table) => each(table, (name, items) => ({ operation: theirs(name).replace("walk", "list"), items }));

/** The kind of a value, in a sentence: the value itself may be secret. */
const kind = (value) => (value === null ? "null" : `this ${Array.isArray(value) ? "array" : typeof value}`);

/**
 * An error of the core with the names of options and methods in JavaScript's spelling. `called` is the operation that the caller began,
 * `given` the options, of which the core says only that one has a wrong type.
 */
export function respelled(fields, called, given) {
  const { operation, field, message, what, cause } = fields;
  // A stand-in for a wrong option counts as one.
  const isOption = (name) => OPTIONS.has(name) || field === "options";
  const text = (told) =>
    told
      .replace(/`([\w.]+)`/g, (all, name) => (isOption(name) ? `\`${ours(name)}\`` : all))
      .replace(/`(\w+)` is not a field of `\w+`/, (all, name) => (ONE_WORD.includes(name) || OPTIONS.has(theirs(name)) ? `\`${name}\` is an option: give it in the argument after` : all))
      .replace(/unknown field `product\.\w+`/, (all) => `${all}; \`cheapest\` makes a product`)
      .replace(/unknown field `(\w+)`/, (all, name) => (field === "options" ? all + meant(name, operation === "client") : all))
      .replace(/`(\w+)` must be (?:a value of its type|JSON of its kind)(?:, and is not at `([^`]+)`)?/, (all, ...path) => {
        const names = path.slice(0, 2).join(".").match(/\w+/g);
        const value = names.reduce((value, name) => value?.[name], given);
        return value === undefined ? all : `\`${names.join(".")}\` does not take ${kind(value)}`;
      });
  // The core begins its messages with the operation. An operation whose options it could not read is only started.
  const of = called ?? operation;
  return {
    ...fields,
    ...(operation === "start" && { operation: of }),
    message: ours(of) + text(message.slice(operation.length)),
    what: text(what),
    ...(field !== undefined && { field: isOption(field) ? ours(field) : field }),
    ...(cause !== undefined && { cause: respelled(cause) }),
  };
}
