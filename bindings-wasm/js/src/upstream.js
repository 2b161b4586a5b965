// The way out of a port: a connection to a session's proxy, and through it to a target, by HTTP, HTTPS or SOCKS5 with a login.
import { request } from "node:http";
import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls } from "node:tls";

import { exactly } from "./exactly.js";

/** So long may a proxy take until the connection to the target is there. */
const PATIENCE_MS = 30_000;
/** Failures that are no session's. */
const OUR_OWN = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);
/** Replies of SOCKS5 (RFC 1928), and those whose cause is not the target. */
const REPLIES = { 1: "general failure", 2: "not allowed", 3: "network unreachable", 4: "host unreachable", 5: "connection refused", 6: "TTL expired" };
const SEEN = { 1: "unknown", 2: "proxy" };

/** Why a port does not do what a client wants: an HTTP status, a sentence, the reply of SOCKS5, and what the session's holder observes. */
export class Refusal extends Error {
  constructor(status, sentence, { reply = 1, seen } = {}) {
    super(sentence);
    Object.assign(this, { status, reply, seen });
  }
}

/** The answer of a proxy, in words that the core knows from HTTP clients. */
class Answered extends Error {
  constructor(status, reason, headers) {
    super(`Tunnel connection failed: ${status} ${reason}`);
    this.headers = headers;
  }
}

/** The parts of a proxy's URL. */
export function partsOf(url) {
  const { protocol, hostname, port, username, password } = new URL(url);
  const [user, word] = [username, password].map(decodeURIComponent);
  const kind = protocol.startsWith("socks") ? "socks5" : protocol.slice(0, -1);
  const authorization = `Basic ${Buffer.from(`${user}:${word}`).toString("base64")}`;
  return { kind, host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || { https: 443, http: 80, socks5: 1080 }[kind], user, word, authorization };
}

/**
 * Connects to a target through a proxy; for a plain request (`isTunnel` is false) over an HTTP proxy to the proxy alone. Throws a `Refusal`.
 *
 * @param proxy The parts of its URL.
 * @param {{ host: string, port: number, name: string }} target
 * @param {AbortSignal} signal Ends the connection, also while it is being made.
 */
export async function connect(proxy, target, isTunnel, signal) {
  const late = AbortSignal.timeout(PATIENCE_MS);
  const either = AbortSignal.any([late, signal]);
  let socket;
  const end = () => socket?.destroy();
  try {
    socket = dial(proxy);
    either.addEventListener("abort", end);
    await reached(socket, proxy.kind === "https" ? "secureConnect" : "connect");
    socket.reachedAt = true;
    if (proxy.kind === "socks5") await bySocks(socket, proxy, target);
    else if (isTunnel) await byConnect(socket, proxy, target);
    return socket;
  } catch (error) {
    socket?.destroy();
    throw refusalOf(error, late.aborted, socket?.reachedAt === true);
  } finally {
    either.removeEventListener("abort", end);
  }
}

function dial({ kind, host, port }) {
  // One end may close its half, and the other one go on.
  const place = { host, port, allowHalfOpen: true };
  const socket = kind === "https" ? connectTls({ ...place, ...(isIP(host) ? {} : { servername: host }) }) : connectTcp(place);
  socket.setNoDelay(true);
  socket.setKeepAlive(true);
  return socket;
}

function reached(socket, event) {
  return new Promise((resolve, reject) => {
    // Without a listener an error would end the program.
    socket.on("error", reject);
    socket.once("close", () => reject(new Gone()));
    socket.once(event, resolve);
  });
}

/** A connection that closed without an answer. */
class Gone extends Error {}

function refusalOf(error, isLate, isReached) {
  if (error instanceof Refusal) return error;
  const seconds = PATIENCE_MS / 1000;
  if (isLate) return new Refusal(504, `the session's proxy ${isReached ? "did not answer" : "could not be reached"} within ${seconds} s`, { seen: isReached ? "timeout" : "proxy" });
  const { code } = error;
  if (OUR_OWN.has(code)) return new Refusal(503, `this machine can't make another connection: ${code}`);
  if (!isReached) return new Refusal(502, `the session's proxy could not be reached${code ? `: ${code}` : ""}`, { seen: "proxy" });
  if (String(code).startsWith("HPE_")) return new Refusal(502, `the answer of the session's proxy can't be read: ${code}`, { seen: "proxy" });
  return new Refusal(502, "the session's proxy closed the connection without an answer", { seen: "unknown" });
}

function byConnect(socket, { authorization }, { name }) {
  return new Promise((resolve, reject) => {
    const asking = request({ method: "CONNECT", path: name, headers: { host: name, "proxy-authorization": authorization }, createConnection: () => socket });
    asking.once("error", reject);
    asking.once("close", () => reject(new Gone()));
    asking.once("connect", (answer, _, head) => {
      const { statusCode, statusMessage, headers } = answer;
      if (statusCode !== 200) return reject(refused(`CONNECT to ${name}`, statusCode, statusMessage, headers));
      // A target may speak first.
      if (head.length) socket.unshift(head);
      resolve();
    });
    asking.end();
  });
}

/** The failure of a proxy that answered with a status. */
export function refused(what, status, reason, headers) {
  const reply = status === 403 ? 2 : [502, 504].includes(status) ? 4 : 1;
  const login = status === 407 ? ", which is how used-up traffic and changed logins show" : "";
  return new Refusal(502, `the session's proxy refused ${what} with ${`${status} ${reason}`.trim()}${login}`, { reply, seen: new Answered(status, reason, headers) });
}

async function bySocks(socket, { user, word }, { host, port, name }) {
  const read = (size) => exactly(socket, size, Gone);
  socket.write(Buffer.from([5, 1, 2]));
  const [version, method] = await read(2);
  if (version !== 5 || method !== 2) throw new Refusal(502, "the session's proxy takes no login by SOCKS5", { seen: "proxy" });
  const [login, password] = [user, word].map((text) => Buffer.from(text));
  socket.write(Buffer.concat([Buffer.from([1, login.length]), login, Buffer.from([password.length]), password]));
  if ((await read(2))[1] !== 0) {
    throw new Refusal(502, "the session's proxy refused the login, which is how used-up traffic and changed logins show", { seen: "proxy" });
  }
  socket.write(Buffer.concat([Buffer.from([5, 1, 0]), addressOf(host), Buffer.from([port >> 8, port & 255])]));
  const [, reply, , kind] = await read(4);
  if (reply !== 0) {
    const said = REPLIES[reply] ?? `reply ${reply}`;
    throw new Refusal(502, `the session's proxy could not connect to ${name}: ${said}`, { reply: reply in REPLIES ? reply : 1, seen: SEEN[reply] ?? "target" });
  }
  const length = kind === 1 ? 4 : kind === 4 ? 16 : (await read(1))[0];
  await read(length + 2);
}

/** A target in the form of SOCKS5; names are looked up by the proxy. */
function addressOf(host) {
  const version = isIP(host);
  if (version === 0) return Buffer.concat([Buffer.from([3, Buffer.byteLength(host)]), Buffer.from(host)]);
  if (version === 4) return Buffer.from([1, ...host.split(".").map(Number)]);
  return Buffer.from([4, ...numbersOf(host)]);
}

/** The 16 bytes of an IPv6 address. The parser of URLs writes an IPv4 address at its end as two groups, too. */
function numbersOf(host) {
  const [head, tail] = new URL(`http://[${host}]`).hostname.slice(1, -1).split("::").map((half) => (half ? half.split(":") : []));
  const groups = tail === undefined ? head : [...head, ...Array(8 - head.length - tail.length).fill("0"), ...tail];
  return groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]);
}
