// Returns true if a JSON value is what a vector expects.

export class Mismatch extends Error {}

export function fail(text) {
  throw new Mismatch(text);
}

/** Compares by the rules of the README; the error says where and what differs. */
export function like(expected, actual, path) {
  const differ = () => fail(`at \`${path}\` expected ${short(expected)}, came ${short(actual)}`);
  if (expected === null || typeof expected !== "object") {
    if (expected !== (actual ?? null)) differ();
    return;
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) differ();
    expected.forEach((item, n) => like(item, actual[n], `${path}[${n}]`));
    return;
  }
  const names = Object.keys(expected).sort().join();
  if (names === "contains") {
    if (typeof actual !== "string" || !actual.includes(expected.contains)) differ();
  } else if (names === "repeated,times") {
    if (actual !== expected.repeated.repeat(expected.times)) differ();
  } else if (names === "max,min" && typeof actual === "number") {
    if (!within(expected, actual)) differ();
  } else {
    if (actual === null || typeof actual !== "object" || Array.isArray(actual)) differ();
    for (const [name, member] of Object.entries(expected)) like(member, actual[name], `${path}.${name}`);
  }
}

/** The same, but nothing more may be there than is expected. */
export function equals(expected, actual, path) {
  like(expected, actual, path);
  try {
    like(actual, expected, path);
  } catch {
    fail(`at \`${path}\` expected ${short(expected)} and no more, came ${short(actual)}`);
  }
}

/** A time: a number, or one between two. */
export function within(range, number) {
  return typeof range === "number" ? number === range : number >= range.min && number <= range.max;
}

export function same(what, expected, found) {
  if (expected !== undefined && expected !== found) fail(`expected ${what} ${short(expected)}, came ${short(found)}`);
}

export function short(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}
