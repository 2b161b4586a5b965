/*
 * Amounts of money are never added as floats here. A price times a quantity is the core's to compute; sums of what was
 * charged are made in whole units of 10⁻¹², as a BigInt, out of decimal texts.
 */
const PLACES = 12;

/** A decimal text, or a number by the shortest text that it has, as whole units; nothing where it is no such text. */
export function units(text) {
  const found = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(String(text));
  return found ? BigInt(found[1] + found[2] + (found[3] ?? "").padEnd(PLACES, "0")) : undefined;
}

/** Units as a decimal text. */
export function decimal(units) {
  const digits = String(units < 0n ? -units : units).padStart(PLACES + 1, "0");
  return `${units < 0n ? "-" : ""}${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`;
}

/** A decimal text as people read it: two places, or more where there are more. */
export function usd(text, currency = "USD") {
  const [whole, rest = ""] = String(text).split(".");
  return `${whole}.${rest.replace(/0+$/, "").padEnd(2, "0")} ${currency}`;
}

/** For drawing only: where a point is may be rounded, what it says may not. */
export const height = (units) => Number(units) / 10 ** PLACES;
