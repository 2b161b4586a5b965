import { optionNames } from "../gen/options.js";

/*
 * The core spells options as the service spells its fields, `max_body`; here they are `maxBody`. What it says of them is
 * told in the spelling that the caller used.
 */

/** The options of more than one word. Parameters and answers are the service's, and keep its spelling. */
const OPTIONS = new Set(optionNames);

/** These are options, too. */
export const alsoOptions = (names) => names.forEach((name) => OPTIONS.add(name));

/** A name of the core as it is spelled here. */
export const ours = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** A name of ours as the core spells it. */
export const theirs = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const each = (table, row) => Object.fromEntries(Object.entries(table).map(([name, told]) => [name, row(name, told)]));

/** What each method of an API sends, of which the table has the verb and the path. */
export const rows = (api, table) =>
  each(table, (name, told) => {
    const [method, path] = told.split(" ");
    return { api, operation: theirs(name), method, path };
  });

/** What each walk of an API reads, of which the table has where in a page its items are. */
export const walks = (table) => each(table, (name, items) => ({ operation: theirs(name).replace("walk", "list"), items }));

/** What kind of value it is, in a sentence: the value itself may be secret. */
const kind = (value) => (value === null ? "null" : `this ${Array.isArray(value) ? "array" : typeof value}`);

/**
 * An error of the core with the names of options and methods as they are spelled here. `called` is the operation that the caller began,
 * `given` the options, of which the core says only that one has another type than it should have.
 */
export function respelled(fields, called, given) {
  const { operation, field, message, what, cause } = fields;
  // Whatever stands for a wrong option is one.
  const isOption = (name) => OPTIONS.has(name) || field === "options";
  const text = (told) =>
    told
      .replace(/`([\w.]+)`/g, (all, name) => (isOption(name) ? `\`${ours(name)}\`` : all))
      .replace(/`(\w+)` must be (?:a value of its type|JSON of its kind)(?:, and is not at `([^`]+)`)?/, (all, ...path) => {
        const names = path.slice(0, 2).join(".").match(/\w+/g);
        const value = names.reduce((value, name) => value?.[name], given);
        return value === undefined ? all : `\`${names.join(".")}\` does not take ${kind(value)}`;
      });
  // The core begins its sentences with the operation. One that it could not read the options of is only started.
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
