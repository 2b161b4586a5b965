import { ask } from "./ask.js";

/*
 * What the error of an HTTP client says of a request through a session's proxy. No client is imported: their errors are known by
 * their codes, names and words. A program connects to its proxy only, and the proxy to the target; so whatever keeps it from being
 * connected is the proxy's.
 */

/** No connection to the proxy: by the code of undici, Node, axios and got, and by what Chromium and Firefox say, and so Playwright. */
const UNCONNECTED = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_TLS)$/;
const PROXYS = /ERR_PROXY_|ERR_(MANDATORY_PROXY|SOCKS_CONNECTION_FAILED|INVALID_AUTH_CREDENTIALS)|NS_ERROR_(UNKNOWN_)?PROXY_|Proxy connection (ended|timed out)|Socks5 Authentication failed/;

const OUT_OF_TIME = /^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(HEADERS|BODY)_TIMEOUT|ERR_TIMED_OUT)$/;
const TOO_LONG = /ERR_(CONNECTION_)?TIMED_OUT|NS_ERROR_NET_TIMEOUT|^timeout of \d+ ?ms exceeded/;

/** What the proxy answered in place of the target when it was to connect to it. */
const ANSWERED = /Proxy response \((\d{3})\)|statusCode=(\d{3})|Bad response: (\d{3})/;

/** What was waited for when got gave up: before that, the proxy was not there yet. */
const CONNECTING = new Set(["lookup", "connect"]);

/** An error as a status or a word. What it came of is looked at, too: an HTTP client wraps the errors of what it is built on. */
export function faultOf(error) {
  const errors = chain(error);
  for (const { response } of errors) {
    const status = response?.status ?? response?.statusCode;
    if (Number.isInteger(status)) return { status };
  }
  for (const { message } of errors) {
    const answered = ANSWERED.exec(message);
    if (answered) return Number(answered.slice(1).find(Boolean)) >= 500 ? "target" : "proxy";
  }
  const isProxys = ({ code, message, syscall, event }) =>
    UNCONNECTED.test(code) || PROXYS.test(message) || (code === "ETIMEDOUT" && (syscall === "connect" || CONNECTING.has(event)));
  if (errors.some(isProxys)) return "proxy";
  const isLate = ({ code, name, message }) => name === "TimeoutError" || OUT_OF_TIME.test(code) || TOO_LONG.test(message);
  return errors.some(isLate) ? "timeout" : "target";
}

/** How long the target asks to wait, in milliseconds: the Retry-After of a response, or of that in an error. */
export function waitOf(seen) {
  const { headers } = seen?.response ?? seen ?? {};
  const told = (name) => String((typeof headers?.get === "function" ? headers.get(name) : headers?.[name]) ?? "");
  const header = told("retry-after");
  return (header && ask("retry_after", { header, date: told("date"), now: Date.now() }).wait_ms) || undefined;
}

/** An error and those that it came of. */
function chain(error) {
  const found = new Set();
  const rest = [error];
  for (const one of rest) {
    if (one === null || typeof one !== "object" || found.has(one)) continue;
    found.add(one);
    rest.push(one.cause, ...(Array.isArray(one.errors) ? one.errors : []));
  }
  return [...found];
}
