/*
 * The common part of the stores of Node and of browsers. Money is compared and added digit for digit: as a whole number of the smallest
 * part that any of the amounts has.
 */

/** The methods of every store. */
export const METHODS = ["claim", "put", "delete", "release", "list", "spend"];

/** The owners of this process or page, of every copy of this package in it. */
const owners = (globalThis[Symbol.for("hopline.owners")] ??= new Set());
export const [enter, leave] = [(owner) => owners.add(owner), (owner) => owners.delete(owner)];
/** Returns true if the owner of a busy name is another client here, and not another program or tab. */
export const isHere = (owner) => owners.has(owner);

/** The number of digits behind the point. */
const places = (text) => (text.split(".")[1] ?? "").length;

function whole(text, scale) {
  const [before, after = ""] = text.split(".");
  return BigInt(before + after.padEnd(scale, "0"));
}

/** The sum of amounts, as text. */
function sum(amounts) {
  const scale = Math.max(0, ...amounts.map(places));
  const total = amounts.reduce((total, amount) => total + whole(amount, scale), 0n);
  const digits = String(total).padStart(scale + 1, "0");
  return scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** Returns true if one amount is more than another. */
function isMore(one, other) {
  const scale = Math.max(places(one), places(other));
  return whole(one, scale) > whole(other, scale);
}

const DAY = 24 * 60 * 60 * 1000;

/** The UTC day of a time, counted from 1970. */
export const dayOf = (ms) => Math.floor(ms / DAY);

/** The number of days for which the spending of a day is kept. */
const KEPT = 40;

/** The sum of a day's entries, if setting one of them would pass the cap; `undefined` if it may be set. */
function beyond(entries, entry, amount, cap) {
  const grows = isMore(amount, entries.get(entry) ?? "0");
  if (cap === undefined || !grows) return undefined;
  const after = new Map(entries).set(entry, amount);
  return isMore(sum([...after.values()]), cap) ? sum([...entries.values()]) : undefined;
}

/** Counts an entry where no other client counts: `days` are those with entries, each of which can be read, written and dropped. */
export async function count(now, days, { day: given, entry, amount, cap }, { read, write, drop }) {
  const today = Math.max(dayOf(now), ...days);
  const day = given ?? today;
  const entries = new Map(await read(day));
  const over = beyond(entries, entry, amount, cap);
  if (over !== undefined) return { over, day };
  await write(day, [...entries.set(entry, amount)]);
  for (const old of days) if (old < today - KEPT) await drop(old);
  return { granted: day };
}

/** The names that can be claimed, in their order: those that are ours, those with data, the others. */
export function claimable(found) {
  const rank = ({ whose, record }) => (whose === "mine" ? 0 : record ? 1 : 2);
  return found.filter(({ whose }) => whose !== "other").sort((one, other) => rank(one) - rank(other));
}
