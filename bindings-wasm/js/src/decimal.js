/*
 * Money in a store is compared and added digit for digit: as a whole number of the smallest part that any of the amounts has.
 */

/** How many digits stand behind the point. */
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

/** Whether one amount is more than another. */
function isMore(one, other) {
  const scale = Math.max(places(one), places(other));
  return whole(one, scale) > whole(other, scale);
}

const DAY = 24 * 60 * 60 * 1000;

/** The UTC day of a time, counted from 1970. */
export const dayOf = (ms) => Math.floor(ms / DAY);

/** What all entries of a day come to, where setting one of them would pass the cap; nothing where it may be set. */
export function beyond(entries, entry, amount, cap) {
  const grows = isMore(amount, entries.get(entry) ?? "0");
  if (cap === undefined || !grows) return undefined;
  const after = new Map(entries).set(entry, amount);
  return isMore(sum([...after.values()]), cap) ? sum([...entries.values()]) : undefined;
}
