// A port on loopback that needs no login: HTTP CONNECT, plain HTTP and SOCKS5 in, one session's proxy out.
import { STATUS_CODES, createServer as createHttp, request } from "node:http";
import { createServer, isIPv6 } from "node:net";
import { pipeline } from "node:stream";

import { exactly } from "./exactly.js";
import { Refusal, connect, refused } from "./upstream.js";

/** So long may a client take to say what it wants. */
const HEAD_MS = 30_000;
/** A connection over which nothing went for so long is closed; sooner once one of its ends has said all. */
const IDLE_MS = 300_000;
const HALF_CLOSED_MS = 30_000;
/** So often the port looks whether the exits of its connections are still to be used, and so long it waits for a refused client to close. */
const LOOKS_MS = 1000;
const LAST_READ_MS = 2000;
const LONGEST_HEAD = 65_536;
/** The most letters of a reason phrase: clients show it, and some read a line of a few KB at most. */
const LONGEST_REASON = 400;

const ACCEPTED = "HTTP/1.1 200 Connection established\r\n\r\n";
const HOST = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$/;
/** The fields that are about one connection, and go no further. */
const OWN = ["connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "te", "trailer", "upgrade", "expect"];
/** The fields that nobody may have left out: a second request could hide in a body without a length. */
const KEPT = ["content-length", "transfer-encoding", "host"];

/** A client that has closed its connection, or speaks what is not spoken here. */
class Gone extends Error {}

/**
 * The port. `exitNow` gives the exit for a new connection, `{ proxy, isValid(), observe(seen) }`, or `undefined` where there is none any more.
 * A port keeps no program alive.
 */
export class Port {
  #exitNow;
  #server;
  #http;
  /** By the client's socket: its exit, and what ends the way out. */
  #connections = new Map();
  #looks;
  isClosed = false;

  constructor(exitNow) {
    this.#exitNow = exitNow;
    this.#http = createHttp({ maxHeaderSize: LONGEST_HEAD, insecureHTTPParser: false, requireHostHeader: false });
    this.#http.on("connect", (call, socket, head) => this.#tunnel(call, socket, head));
    this.#http.on("request", (call, answer) => this.#plain(call, answer));
    this.#http.on("clientError", (error, socket) => farewell(socket, new Refusal(400, `the request can't be read: ${error.code ?? "it is not HTTP/1.1"}`)));
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket)).unref();
  }

  /** Listens, and returns the URL. */
  async open(number) {
    await new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: "127.0.0.1", port: number, backlog: 1024 }, resolve);
    });
    // One that a descriptor is missing for is not accepted, and tries again.
    this.#server.on("error", () => {});
    this.#looks = setInterval(() => this.#look(), LOOKS_MS).unref();
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Ends all connections at once. */
  async close() {
    this.isClosed = true;
    clearInterval(this.#looks);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const [socket, { stop }] of this.#connections) {
      stop.abort();
      socket.destroy();
    }
    await closed;
  }

  /** Ends the connections of exits that are over. */
  #look() {
    for (const [socket, { exit, stop }] of this.#connections) {
      if (!exit || exit.isValid()) continue;
      stop.abort();
      socket.destroy();
    }
  }

  #accept(socket) {
    if (this.isClosed) return socket.destroy();
    const connection = { exit: undefined, stop: new AbortController(), isAsked: false };
    this.#connections.set(socket, connection);
    // After each failure the connection closes.
    socket.on("error", () => {});
    socket.once("close", () => {
      this.#connections.delete(socket);
      connection.stop.abort();
    });
    socket.setTimeout(HEAD_MS, () => socket.destroy());
    this.#begin(socket).catch((error) => {
      if (error instanceof Refusal) farewell(socket, error);
      else socket.destroy();
    });
  }

  async #begin(socket) {
    const first = await exactly(socket, 1, Gone);
    if (first[0] === 5) return this.#bySocks(socket);
    if (first[0] === 4) return socket.end(Buffer.from([0, 0x5b, 0, 0, 0, 0, 0, 0]));
    if (!/^[A-Za-z]$/.test(first.toString("latin1"))) throw new Gone();
    socket.unshift(first);
    this.#http.emit("connection", socket);
    socket.resume();
  }

  /** Takes an exit, and connects through it. */
  async #wayOut(socket, target, isTunnel) {
    const connection = this.#connections.get(socket);
    const exit = this.#exitNow();
    if (!connection || !exit) throw new Refusal(503, "the lease or session of this port is over, or not usable yet");
    // From here on what it waits for has a limit of its own.
    socket.setTimeout(0);
    connection.exit = exit;
    try {
      const upstream = await connect(exit.proxy, target, isTunnel, connection.stop.signal);
      // A client that is gone by now needs none.
      if (connection.stop.signal.aborted) {
        upstream.destroy();
        throw new Gone();
      }
      connection.stop.signal.addEventListener("abort", () => upstream.destroy());
      return { exit, upstream };
    } catch (error) {
      if (error.seen !== undefined && !connection.stop.signal.aborted) exit.observe(error.seen);
      throw error;
    }
  }

  /** Only the first call of a connection is answered: the next one may be for another target. */
  #isFirst(call, socket) {
    const connection = this.#connections.get(socket);
    if (!connection || connection.isAsked) return false;
    connection.isAsked = true;
    if (call.httpVersionMajor !== 1) throw new Refusal(400, "this port speaks HTTP/1.1 and SOCKS5, and not what this is");
    return true;
  }

  async #tunnel(call, socket, head) {
    try {
      if (!this.#isFirst(call, socket)) return socket.destroy();
      const { upstream } = await this.#wayOut(socket, split(call.url), true);
      // Not back to the client's side, which may have said all by now.
      if (head.length) upstream.write(head);
      socket.write(ACCEPTED);
      relay(socket, upstream);
    } catch (error) {
      farewell(socket, error);
    }
  }

  async #bySocks(socket) {
    const read = (size) => exactly(socket, size, Gone);
    const methods = await read((await read(1))[0]);
    // Some clients send a login though they have none; it says nothing here.
    const method = methods.includes(0) ? 0 : methods.includes(2) ? 2 : 0xff;
    socket.write(Buffer.from([5, method]));
    if (method === 0xff) return farewell(socket);
    if (method === 2) {
      await read(1);
      for (let part = 0; part < 2; part += 1) await read((await read(1))[0]);
      socket.write(Buffer.from([1, 0]));
    }
    const [, command, , kind] = await read(4);
    const told = (error) => farewell(socket, undefined, Buffer.from([5, error.reply ?? 1, 0, 1, 0, 0, 0, 0, 0, 0]));
    const length = kind === 1 ? 4 : kind === 4 ? 16 : kind === 3 ? (await read(1))[0] : undefined;
    if (length === undefined) return told({ reply: 8 });
    const address = await read(length);
    const port = (await read(2)).readUInt16BE();
    if (command !== 1) return told({ reply: 7 });
    try {
      const host = kind === 3 ? address.toString() : kind === 1 ? address.join(".") : groupsOf(address);
      const { upstream } = await this.#wayOut(socket, split(`${kind === 4 ? `[${host}]` : host}:${port}`), true);
      socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
      relay(socket, upstream);
    } catch (error) {
      told(error);
    }
  }

  /** One request and its answer; then the connection ends, so that no second request goes to the first one's target. */
  async #plain(call, answer) {
    const { socket } = call;
    try {
      if (!this.#isFirst(call, socket)) return;
      answer.shouldKeepAlive = false;
      const { target, path } = wanted(call.url);
      const { exit, upstream } = await this.#wayOut(socket, target, false);
      await passed(call, answer, target, path, exit, upstream);
    } catch (error) {
      if (!answer.headersSent) return farewell(socket, error);
      socket.destroy();
    }
  }
}

/** The target and the path of a plain request. */
function wanted(url) {
  if (url.startsWith("/")) throw new Refusal(400, "this is a proxy: give it to a client as http://, or socks5h://, with this address");
  const [, place, path] = /^http:\/\/([^/?#]*)([^#]*)/i.exec(url) ?? [];
  if (!place) throw new Refusal(501, "a plain request has a URL with http://; https is by CONNECT");
  return { target: split(place.slice(place.lastIndexOf("@") + 1), 80), path: path.startsWith("/") ? path : `/${path}` };
}

/** The host and the port of a target. A host goes into the head of another request, so it has no letters that a host has not. */
function split(place, usual) {
  const [, host, digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{0,5}))?$/.exec(place) ?? [];
  const bare = host?.replace(/^\[|\]$/g, "");
  const port = Number(digits || usual || 0);
  const isHost = host?.startsWith("[") ? isIPv6(bare) && !bare.includes("%") : HOST.test(bare ?? "");
  if (!isHost || !(port > 0 && port < 65_536)) throw new Refusal(400, `\`${place.slice(0, 100)}\` is not a host with a port`, { reply: 8 });
  return { host: bare, port, name: `${host}:${port}` };
}

const groupsOf = (address) => address.toString("hex").match(/.{4}/g).join(":");

/** Passes a plain request on, and its answer back. */
function passed(call, answer, target, path, exit, upstream) {
  const place = target.port === 80 ? target.name.slice(0, -3) : target.name;
  const isBySocks = exit.proxy.kind === "socks5";
  const headers = ["Host", place, ...(isBySocks ? [] : ["Proxy-Authorization", exit.proxy.authorization]), ...further(call.rawHeaders, ["host"]), "Connection", "close"];
  return new Promise((resolve, reject) => {
    const asking = request({ method: call.method, path: isBySocks ? path : `http://${place}${path}`, headers, createConnection: () => upstream });
    const failed = (seen, refusal) => {
      if (!call.socket.destroyed) exit.observe(seen);
      reject(refusal);
    };
    asking.setTimeout(IDLE_MS, () => failed("timeout", new Refusal(504, `the target did not answer within ${IDLE_MS / 1000} s`)));
    asking.once("error", ({ code }) => {
      const said = String(code).startsWith("HPE_") ? `the answer can't be read: ${code}` : "the connection through the session's proxy closed without an answer";
      failed("unknown", new Refusal(502, said));
    });
    asking.once("response", (came) => {
      const { statusCode: status, statusMessage, rawHeaders } = came;
      if (status === 407 && !isBySocks) {
        const refusal = refused("the request", status, statusMessage, came.headers);
        return failed(refusal.seen, refusal);
      }
      exit.observe({ status, headers: came.headers });
      answer.sendDate = false;
      answer.writeHead(status, statusMessage, [...further(rawHeaders, []), "Connection", "close"]);
      pipeline(came, answer, (error) => {
        if (!error) return resolve();
        // A body that breaks off.
        failed("unknown", error);
      });
    });
    // A body that breaks off takes its request along, and the client hears of the rest in the answer.
    call.once("error", () => asking.destroy());
    call.pipe(asking);
    // Behind the listeners of the request, which come in the next tick. The socket was paused after the login.
    process.nextTick(() => upstream.resume());
  });
}

/** The fields of a message that are meant for the other end. */
function further(raw, without) {
  const pairs = Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at], raw[2 * at + 1]]);
  const named = pairs.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) => value.split(",").map((word) => word.trim().toLowerCase()));
  const gone = new Set([...OWN, ...named.filter((name) => !KEPT.includes(name)), ...without]);
  return pairs.filter(([name]) => !gone.has(name.toLowerCase())).flat();
}

/** Passes everything on, in both directions, no faster than each end reads, until both have said all. */
function relay(client, upstream) {
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  client.removeAllListeners("timeout");
  client.setTimeout(IDLE_MS, end);
  for (const [one, other] of [[client, upstream], [upstream, client]]) {
    one.once("error", end);
    one.once("end", () => client.setTimeout(HALF_CLOSED_MS));
    // One that has closed without having said all has been reset.
    one.once("close", () => (one.readableEnded ? undefined : end()));
    one.pipe(other);
  }
}

/** Ends a client's connection with a refusal, or with these bytes. Closed with something unread, it would be reset, and the client might lose them. */
function farewell(socket, error, bytes) {
  if (socket.destroyed) return;
  if (error && !(error instanceof Refusal)) return socket.destroy();
  socket.removeAllListeners("timeout");
  socket.setTimeout(LAST_READ_MS, () => socket.destroy());
  setTimeout(() => socket.destroy(), LAST_READ_MS).unref();
  socket.end(bytes ?? (error && response(error)));
  socket.resume();
}

/** The response of a refusal. Many clients show no more of a refused CONNECT than the reason phrase, so the sentence stands there, too. */
function response({ status, message }) {
  const body = `hopline: ${message}\n`;
  const shown = message.replace(/[^ -~]/g, "?").slice(0, LONGEST_REASON);
  const fields = { "Content-Type": "text/plain; charset=utf-8", "Content-Length": Buffer.byteLength(body), "Cache-Control": "no-store", Connection: "close" };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}: ${shown}\r\n${head}\r\n${body}`;
}
