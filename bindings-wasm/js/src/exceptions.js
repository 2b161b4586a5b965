import { ask } from "./ask.js";

/** How many errors of a chain are told, and how much of what each says. */
const LINKS = 16;
const LETTERS = 4000;

/** What a client waited for when it gave up: before that, the proxy was not there yet. */
const CONNECTING = new Set(["lookup", "connect"]);

/** An error of an HTTP client as a status or a word. The core knows them by what they are named and say, which is kept nowhere. */
export function exceptionOf(error) {
  let told = [];
  try {
    told = chain(error).map(facts);
  } catch {
    // Anything can be thrown, even what breaks when it is looked at.
  }
  return told.length > 0 ? ask("seen", { chain: told }) : "unknown";
}

/** How long the target asks to wait, in milliseconds: the Retry-After of a response, or of that in an error. */
export function waitOf(seen) {
  const { headers } = seen?.response ?? seen ?? {};
  const told = (name) => String((typeof headers?.get === "function" ? headers.get(name) : headers?.[name]) ?? "");
  const header = told("retry-after");
  return (header && ask("retry_after", { header, date: told("date"), now: Date.now() }).wait_ms) || undefined;
}

/** An error and those that it came of: an HTTP client wraps the errors of what it is built on. */
function chain(error) {
  const found = new Set();
  const rest = [error];
  for (const one of rest) {
    if (one === null || typeof one !== "object" || found.has(one) || found.size === LINKS) continue;
    found.add(one);
    rest.push(one.cause, one.reason, ...(Array.isArray(one.errors) ? one.errors.slice(0, LINKS) : []));
  }
  return [...found];
}

function facts(error) {
  const { code, response, message, syscall, event } = error;
  const status = [response?.status, response?.statusCode, error.status, error.statusCode].find((one) => Number.isInteger(one) && one >= 100 && one < 1000);
  return {
    names: names(error),
    ...(typeof code === "string" && { code: wellFormed(code) }),
    ...(status && { status }),
    said: wellFormed(String(message).slice(0, LETTERS)),
    ...((syscall === "connect" || CONNECTING.has(event)) && { during: "connect" }),
  };
}

/** The names of its class and of those that it is based on. */
function names(error) {
  const found = [error.name];
  for (let one = Object.getPrototypeOf(error); one; one = Object.getPrototypeOf(one)) found.push(one.constructor?.name);
  return [...new Set(found)].filter((name) => typeof name === "string").slice(0, LINKS).map(wellFormed);
}

/** Without halves of surrogate pairs, which are no text. */
const wellFormed = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");
