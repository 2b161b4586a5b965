import { refuse } from "./error.js";
import { join } from "./exchange.js";

/*
 * The six calls of a store: the core's form of a call, and of the store's answer. Data of several names crosses as one piece, with the
 * length of each.
 */

/** Accepts bytes of another realm, such as Node's own in a test runner. */
const isData = (data) => Object.prototype.toString.call(data) === "[object Uint8Array]";

/** Encodes the store's answer for the core: a word, lines, and the data of several names behind their lengths. */
function stored(word, lines = [], data = []) {
  const told = [...lines, ...data.map((part) => part?.length ?? -1)].join("\n");
  const bytes = join(data.filter(Boolean));
  return (core, id, now) => core.stored(id, word, told, bytes, ...now);
}

/** Encodes the answer of a put and a delete. */
const written = (answer) => (answer === "done" || answer === "lost" ? stored(answer) : undefined);

/** By method: the encoding of its answer; `undefined` for an invalid answer. */
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

/**
 * Decodes a call of the core: returns a function of the store that returns the encoded answer, and whether a client of this process owns
 * the names.
 */
export function callOf([method, ...given]) {
  return async (store) => {
    const answer = await store[method](...given);
    const told = ANSWERS[method](answer, given[0]);
    if (!told) throw refuse("store", "store", `what \`${method}\` of this store answered is not one of its answers`);
    return { told, isBusyHere: answer?.here === true };
  };
}

/** The encoded answer if the store threw: the call may or may not be done. */
export const failed = stored("failed");
/** The encoded answer if the store could not be opened at all: the call was certainly not done. */
export const never = stored("never");
