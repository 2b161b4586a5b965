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

/** Returns the failures of Node's own `fetch` that sent nothing; `undefined` for those that may have. */
export function before(error) {
  const cause = error?.cause;
  // A name with several addresses has a failure for each.
  const kinds = (cause?.errors ?? [cause]).map(kind);
  return kinds.length > 0 && kinds.every(Boolean) ? { kind: kinds[0], sent: "never" } : undefined;
}

function kind(cause) {
  const { code, syscall, message } = cause ?? {};
  if (CALLS.has(syscall)) return NAMELESS.test(code) ? "dns" : "connect";
  const isUnconnected = code === TOO_LONG || message === BLOCKED;
  return isUnconnected ? "connect" : CERTIFICATE.test(code) ? "tls" : undefined;
}
