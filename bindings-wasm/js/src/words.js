/*
 * Errors of other code, such as of a store or a `fetch` of the caller's own, in a form that people may see: the message and the place in
 * the program, without secrets. Anything can be thrown, even an object that throws when it is read; then this throws, too.
 */

/** Texts that are secrets anywhere: a login in an address, an authorization, a token, and a value after the name of a secret. */
const LOGIN = /(?<=\/\/)[^\s/@]*(?:\/[^\s@]*)?@|\b(?:Basic|Bearer)\s+[^\s'",;)]+|\beyJ[\w.-]+/gi;
const NAMED = /(?<![\w-])([\w-]{0,40}(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|authorization|credentials?)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"',;&)]+)/gi;
/** The members of a body that are secrets, or say who somebody is. */
const MEMBER = /pass|pwd|secret|token|key|auth|credential|mail|user_?name/i;
/** The longest message, and the part of an error that is read: an error may quote a whole page. */
const [LONGEST, LONGEST_READ] = [300, 4000];
/** Lines of a stack that are Node's own or this package's. */
const FOREIGN = /\bnode:|[\\/]hopline[\\/](?:node\.cjs|\w+\.mjs)/;

/** A member of a thrown or given value; `undefined` if reading it throws. */
export function memberOf(of, name) {
  try {
    return of?.[name];
  } catch {
    return undefined;
  }
}

/** Accepts errors of another realm, such as Node's own in a test runner. */
export function isError(error) {
  try {
    return error instanceof Error || Object.prototype.toString.call(error) === "[object Error]";
  } catch {
    // A proxy may throw when it is read.
    return false;
  }
}

/** A text without the secrets in it, nor any longer part of them, since a quotation may have cut them. */
export function redacted(text, secrets = []) {
  const known = [...new Set(secrets.flatMap(spellings))].filter(Boolean).sort((a, b) => b.length - a.length);
  const whole = known.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), text).slice(0, LONGEST_READ);
  // A secret may have the name of one in it, so the names are read before.
  const named = whole.replace(LOGIN, "[redacted]").replace(NAMED, "$1[redacted]");
  const plain = withoutParts(named, known).replace(/\s+/g, " ").trim();
  return plain.length > LONGEST ? `${plain.slice(0, LONGEST)}…` : plain;
}

/** The secret texts in some JSON. */
export function secretsIn(json, isSecret = false) {
  if (typeof json === "string") return isSecret ? [json] : [];
  return Object.entries(json ?? {}).flatMap(([name, value]) => secretsIn(value, isSecret || MEMBER.test(name)));
}

/** The shortest part of a secret that is hidden, in letters. */
const PART = 8;

/** A secret as it is, in JSON and in an address. */
const spellings = (secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];

function withoutParts(text, secrets) {
  const parts = new Set(secrets.flatMap((secret) => Array.from({ length: Math.max(secret.length - PART + 1, 0) }, (_, n) => secret.slice(n, n + PART))));
  let [plain, from] = ["", 0];
  for (let at = 0; at + PART <= text.length; at += 1) {
    if (!parts.has(text.slice(at, at + PART))) continue;
    plain += `${text.slice(from, at)}[redacted]`;
    while (parts.has(text.slice(at + 1, at + 1 + PART))) at += 1;
    from = at + PART;
    at = from - 1;
  }
  return plain + text.slice(from);
}

/** The place of an exception, such as `my-store.mjs:12`: in the program's own files, if it came through them. */
export function placeOf({ stack }) {
  const all = String(stack ?? "").slice(-LONGEST_READ).split("\n").filter((line) => !FOREIGN.test(line));
  // Some browsers write no message into a stack, and no "at" before a place.
  const frames = all.filter((line) => /^\s+at /.test(line));
  const lines = frames.length > 0 ? frames : all.filter((line) => /^[^\s@]*@\S+:\d+:\d+$/.test(line));
  const line = lines.find((line) => !/[\\/]node_modules[\\/]/.test(line)) ?? lines[0];
  const [, file, number] = /([^\\/\s()@?:]+)(?:\?[^:\s]*)?:(\d+)(?::\d+)?\)?\s*$/.exec(line ?? "") ?? [];
  return file && `${file}:${number}`;
}

/** The words of an error, and its place behind them. */
export function wordsOf(error) {
  const place = isError(error) ? placeOf(error) : undefined;
  const words = redacted([error?.code, error?.message ?? error].filter((one) => one !== undefined && one !== "").map(String).join(": "));
  return [words, place && `(${place})`].filter(Boolean).join(" ");
}
