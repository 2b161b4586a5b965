/** The system calls that come before the first byte, whatever they fail by. Of another call the same code may come after it. */
const CALLS = new Set(["getaddrinfo", "connect"]);
/** The codes for a name that has no address, or whose server does not answer. */
const NAMELESS = /^(ENOTFOUND$|EAI_)/;
/** The code of Node's own `fetch` for a connection that took too long. */
const TOO_LONG = "UND_ERR_CONNECT_TIMEOUT";
/** Its message for a port that the standard of `fetch` blocks, which has no code. */
const BLOCKED = "bad port";
/** A certificate that is refused ends the connection before the request. */
const CERTIFICATE = /^(ERR_TLS_CERT_|CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE|DECRYPT_CERT|DECODE_ISSUER))/;

/** The words of Deno for a connection that did not come about, and for a port that it blocks. */
const UNCONNECTED = /client error \(Connect\)|^Fetch failed: Requests to port \d+ are blocked/;
const [NO_ADDRESS, NOT_TRUSTED] = [/dns error/, /peer certificate/];

/**
 * Returns the function that recognises the failures of this `fetch` that sent nothing, and returns `undefined` for those that may have;
 * nothing if this is no runtime's own: one that repeats may have sent a request before it fails.
 */
export function failuresOf(fetch, { Bun, Deno } = globalThis) {
  const source = typeof fetch === "function" ? Function.prototype.toString.call(fetch) : "";
  if (Bun) return fetch?.name === "fetch" && source.includes("[native code]") ? inBun : undefined;
  if (Deno) return /\blazyFetch\(\)/.test(source) ? inDeno : undefined;
  return /\bfetchImpl\b/.test(source) ? inNode : undefined;
}

const never = (kind) => (kind ? { kind, sent: "never" } : undefined);

export function inNode(error) {
  const cause = error?.cause;
  // A name with several addresses has a failure for each.
  const kinds = (cause?.errors ?? [cause]).map(kindOf);
  return kinds.length > 0 && kinds.every(Boolean) ? never(kinds[0]) : undefined;
}

/** Bun sends a request anew if a connection that was used before breaks off; a write's was not. */
export function inBun({ code, syscall, message }) {
  return never(/Unable to connect/.test(message) ? "connect" : kindOf({ code, syscall, message }));
}

export function inDeno({ message, cause }) {
  const words = [message, cause?.message].find((words) => UNCONNECTED.test(words));
  return never(words && (NO_ADDRESS.test(words) ? "dns" : NOT_TRUSTED.test(words) ? "tls" : "connect"));
}

function kindOf(cause) {
  const { code, syscall, message } = cause ?? {};
  if (CALLS.has(syscall)) return NAMELESS.test(code) ? "dns" : "connect";
  const isUnconnected = code === TOO_LONG || message === BLOCKED;
  return isUnconnected ? "connect" : CERTIFICATE.test(code) ? "tls" : undefined;
}
