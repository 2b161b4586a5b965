import { refuse } from "./error.js";

/*
 * The six calls of a store: how the core asks, and how it is told what the store answered. Data of several names crosses as one
 * piece, with the length of each.
 */

const isData = (data) => data instanceof Uint8Array;

function packed(all) {
  const lengths = Int32Array.from(all, (data) => data?.length ?? -1);
  const bytes = new Uint8Array(all.reduce((length, data) => length + (data?.length ?? 0), 0));
  let at = 0;
  for (const data of all) {
    if (!data) continue;
    bytes.set(data, at);
    at += data.length;
  }
  return [lengths, bytes];
}

const stored = (word) => (core, id, now) => core.stored(id, word, ...now);

/** Of a put and a delete. */
const written = (answer) => (answer === "done" || answer === "lost" ? stored(answer) : undefined);

/** By method: what is told of its answer; nothing where that is none. */
const ANSWERS = {
  claim(answer, names) {
    if (answer?.claimed instanceof Map) {
      const given = [...answer.claimed];
      if (given.every(([name, data]) => names.includes(name) && (data == null || isData(data)))) {
        return (core, id, now) => core.claimed(id, given.map(([name]) => name), ...packed(given.map(([, data]) => data)), ...now);
      }
    } else if (answer && "busy" in answer && (answer.busy == null || isData(answer.busy))) {
      return (core, id, now) => core.busy(id, answer.busy ?? undefined, ...now);
    }
    return undefined;
  },
  put: written,
  delete: written,
  release: () => stored("done"),
  list({ entries, more }) {
    const isListed = ({ name, data, whose }) => typeof name === "string" && isData(data) && typeof whose === "string";
    if (!Array.isArray(entries) || !entries.every(isListed) || typeof more !== "boolean") return undefined;
    const [names, whose] = ["name", "whose"].map((member) => entries.map((entry) => entry[member]));
    return (core, id, now) => core.listed(id, names, ...packed(entries.map(({ data }) => data)), whose, more, ...now);
  },
  spend({ granted, over }) {
    if (Number.isInteger(granted)) return (core, id, now) => core.granted(id, granted, ...now);
    return typeof over === "string" ? (core, id, now) => core.over(id, over, ...now) : undefined;
  },
};

/** What every store has. */
export const METHODS = Object.keys(ANSWERS);

/** A call that the core asks a store for: gives a function of the store that gives what to tell the core. */
export function callOf([method, ...given]) {
  return async (store) => {
    const told = ANSWERS[method](await store[method](...given), given[0]);
    if (!told) throw refuse("store", "store", `what \`${method}\` of this store answered is not one of its answers`);
    return told;
  };
}

/** What the core is told where the store threw: perhaps it was done, perhaps not. */
export const failed = stored("failed");
