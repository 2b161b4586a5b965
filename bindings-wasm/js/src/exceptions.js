import { ask } from "./ask.js";
import { memberOf } from "./words.js";

/** The most errors of a chain that are read, and the most letters of each. */
const LINKS = 16;
const LETTERS = 4000;

/** The system calls before the proxy is connected. */
const CONNECTING = new Set(["lookup", "connect"]);

/** Interprets an error of an HTTP client as a status or a word. The core knows them by their names and texts, which are kept nowhere. */
export function exceptionOf(error) {
  const told = chain(error).map(facts);
  return told.length > 0 ? ask("seen", { chain: told }) : "unknown";
}

/** The wait that the target asks for, in milliseconds: the Retry-After of a response, or of that in an error. */
export function waitOf(seen) {
  const headers = memberOf(memberOf(seen, "response") ?? seen, "headers");
  const header = headerOf(headers, "retry-after");
  return (header && ask("retry_after", { header, date: headerOf(headers, "date"), now: Date.now() }).wait_ms) || undefined;
}

/** A header as text; an empty text if there is none, or if it can't be read. */
function headerOf(headers, name) {
  try {
    return wellFormed(String((typeof headers?.get === "function" ? headers.get(name) : headers?.[name]) ?? ""));
  } catch {
    return "";
  }
}

/** An error and its causes: an HTTP client wraps the errors of its own dependencies. */
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

/** The names of its class and the base classes. */
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

/** Replaces halves of surrogate pairs, which are not valid text. */
const wellFormed = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");
