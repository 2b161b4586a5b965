import { ask } from "./ask.js";
import { memberOf } from "./words.js";

/** How many errors of a chain are told, and how much of what each says. */
const LINKS = 16;
const LETTERS = 4000;

/** What a client waited for when it gave up: before that, the proxy was not there yet. */
const CONNECTING = new Set(["lookup", "connect"]);

/** An error of an HTTP client as a status or a word. The core knows them by what they are named and say, which is kept nowhere. */
export function exceptionOf(error) {
  const told = chain(error).map(facts);
  return told.length > 0 ? ask("seen", { chain: told }) : "unknown";
}

/** How long the target asks to wait, in milliseconds: the Retry-After of a response, or of that in an error. */
export function waitOf(seen) {
  const headers = memberOf(memberOf(seen, "response") ?? seen, "headers");
  const header = headerOf(headers, "retry-after");
  return (header && ask("retry_after", { header, date: headerOf(headers, "date"), now: Date.now() }).wait_ms) || undefined;
}

/** A header as text; no text where there is none, or where it can't be read. */
function headerOf(headers, name) {
  try {
    return wellFormed(String((typeof headers?.get === "function" ? headers.get(name) : headers?.[name]) ?? ""));
  } catch {
    return "";
  }
}

/** An error and those that it came of: an HTTP client wraps the errors of what it is built on. */
function chain(error) {
  const found = new Set();
  const rest = [error];
  for (const one of rest) {
    if (one === null || typeof one !== "object" || found.has(one) || found.size === LINKS) continue;
    found.add(one);
    const errors = memberOf(one, "errors");
    rest.push(memberOf(one, "cause"), memberOf(one, "reason"), ...(Array.isArray(errors) ? errors.slice(0, LINKS) : []));
  }
  return [...found];
}

function facts(error) {
  const [code, response, syscall, event] = ["code", "response", "syscall", "event"].map((name) => memberOf(error, name));
  const status = [response, error].flatMap((one) => [memberOf(one, "status"), memberOf(one, "statusCode")]).find((one) => Number.isInteger(one) && one >= 100 && one < 1000);
  return {
    names: names(error),
    ...(typeof code === "string" && { code: wellFormed(code) }),
    ...(status && { status }),
    said: textOf(memberOf(error, "message")),
    ...((syscall === "connect" || CONNECTING.has(event)) && { during: "connect" }),
  };
}

/** The names of its class and of those that it is based on. */
function names(error) {
  const found = [memberOf(error, "name")];
  try {
    for (let one = Object.getPrototypeOf(error); one && found.length < LINKS; one = Object.getPrototypeOf(one)) found.push(memberOf(memberOf(one, "constructor"), "name"));
  } catch {
    // A proxy may throw here, too.
  }
  return [...new Set(found)].filter((name) => typeof name === "string").map(wellFormed);
}

/** A message, which may be anything. */
function textOf(message) {
  try {
    return wellFormed(String(message).slice(0, LETTERS));
  } catch {
    return "";
  }
}

/** Without halves of surrogate pairs, which are no text. */
const wellFormed = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");
