import { refuse } from "./error.js";
import { join } from "./exchange.js";

/*
 * The six calls of a store: how the core asks, and how it is told what the store answered. Data of several names crosses as one
 * piece, with the length of each.
 */

/** Also of another realm, such as Node's own in a test runner. */
const isData = (data) => Object.prototype.toString.call(data) === "[object Uint8Array]";

/** Tells the core what the store answered: a word, lines, and the data of several names behind their lengths. */
function stored(word, lines = [], data = []) {
  const told = [...lines, ...data.map((part) => part?.length ?? -1)].join("\n");
  const bytes = join(data.filter(Boolean));
  return (core, id, now) => core.stored(id, word, told, bytes, ...now);
}

/** Of a put and a delete. */
const written = (answer) => (answer === "done" || answer === "lost" ? stored(answer) : undefined);

/** By method: what is told of its answer; nothing where that is none. */
const ANSWERS = {
  claim(answer, names) {
    if (answer?.claimed instanceof Map) {
      const given = [...answer.claimed];
      if (given.every(([name, data]) => names.includes(name) && (data == null || isData(data)))) {
        return stored("claimed", given.map(([name]) => name), given.map(([, data]) => data));
      }
    } else if (answer && "busy" in answer && (answer.busy == null || isData(answer.busy))) {
      return stored("busy", [], [answer.busy]);
    }
    return undefined;
  },
  put: written,
  delete: written,
  release: () => stored("done"),
  list({ entries, more }) {
    const isListed = ({ name, data, whose }) => typeof name === "string" && isData(data) && typeof whose === "string";
    if (!Array.isArray(entries) || !entries.every(isListed) || typeof more !== "boolean") return undefined;
    const texts = ["name", "whose"].flatMap((member) => entries.map((entry) => entry[member]));
    return stored(more ? "more" : "listed", texts, entries.map(({ data }) => data));
  },
  spend({ granted, over, day }) {
    if (Number.isInteger(granted)) return stored("granted", [String(granted)]);
    return typeof over === "string" && Number.isInteger(day) ? stored("over", [String(day), over]) : undefined;
  },
};

/** What every store has. */
export const METHODS = Object.keys(ANSWERS);

/** A call that the core asks a store for: gives a function of the store that gives what to tell the core, and whether a client of this process is in the way. */
export function callOf([method, ...given]) {
  return async (store) => {
    const answer = await store[method](...given);
    const told = ANSWERS[method](answer, given[0]);
    if (!told) throw refuse("store", "store", `what \`${method}\` of this store answered is not one of its answers`);
    return { told, isBusyHere: answer?.here === true };
  };
}

/** What the core is told where the store threw: perhaps it was done, perhaps not. */
export const failed = stored("failed");
/** The same where the store could not be opened at all: surely it was not done. */
export const never = stored("never");
