// A dispatcher of `undici` whose requests go through a pool, each by a lease of its own.

import { isIP } from "node:net";

/** The methods of requests that may be repeated, and how many times, each through another session. */
const SAFE = ["GET", "HEAD", "OPTIONS"];
const REPEATS = 2;

/**
 * Makes the dispatcher.
 *
 * @param pool The pool.
 * @param {{ key?: string, timeoutMs?: number }} terms The terms of its leases.
 * @param connect Makes the connections of an exit, from the proxy of its session.
 * @param {string} service The base URL of the client's own service, whose requests go around the pool: a program may make this dispatcher
 * the one of all its requests.
 * @param undici The package.
 */
export function dispatcherOver(pool, terms, connect, service, { Agent, Dispatcher, util }) {
  const own = new URL(service).origin;
  /** The connections of the exits that were used last, by slot. */
  const exits = new Map();
  let around;

  function through(lease) {
    const { slot, sessionId, generation, proxy } = lease;
    const before = exits.get(slot);
    if (before?.sessionId === sessionId && before.generation === generation) return before.agent;
    before?.agent.close().catch(() => {});
    const agent = connect(proxy);
    exits.set(slot, { sessionId, generation, agent });
    return agent;
  }

  const all = () => [...[...exits.values()].map(({ agent }) => agent), ...(around ? [around] : [])];
  return new (class PoolDispatcher extends Dispatcher {
    dispatch(options, handler) {
      if (new URL(options.origin).origin === own) return (around ??= new Agent()).dispatch(options, handler);
      new Exchange(pool, terms, through, options, legacy(handler, util)).begin();
      return true;
    }

    /** Closes the connections, once nothing goes over them. */
    async close() {
      await Promise.all(all().map((agent) => agent.close()));
    }

    async destroy(error) {
      await Promise.all(all().map((agent) => agent.destroy(error ?? null)));
    }
  })();
}

/** One request, over as many leases as it takes. */
class Exchange {
  #pool;
  #terms;
  #through;
  #options;
  #handler;
  #left;
  #stop = new AbortController();
  /** The attempt that is under way, and the one before it, whose answer was a block: it is kept until there is another session. */
  #attempt;
  #blocked;

  constructor(pool, terms, through, options, handler) {
    const { body, method = "GET", origin } = options;
    // Any other body can be read once only.
    const isRepeatable = SAFE.includes(method) && (body == null || typeof body === "string" || ArrayBuffer.isView(body));
    this.#left = isRepeatable ? REPEATS : 0;
    const { hostname } = new URL(origin);
    this.#terms = { timeoutMs: 90_000, ...terms, target: hostname };
    this.#pool = pool;
    this.#through = through;
    // `undici` takes the name from the header of the host, and ends a connection whose next request has no such header.
    this.#options = isIP(hostname.replace(/^\[|\]$/g, "")) ? options : { servername: hostname, ...options };
    this.#handler = handler;
  }

  begin() {
    try {
      // Before there is a lease, so that its client can give up meanwhile.
      this.#handler.onConnect?.((reason) => this.#abort(reason));
    } catch (error) {
      return this.#handler.onError(error);
    }
    this.#next();
  }

  #abort(reason) {
    this.#stop.abort(reason);
    this.#attempt?.abort?.(reason);
  }

  async #next() {
    let lease;
    try {
      // A pool of one has no other session; that one gets another exit.
      const avoid = this.#blocked && (await this.#pool.status()).size > 1 ? this.#blocked.lease.sessionId : undefined;
      lease = await this.#pool.acquire({ ...this.#terms, ...(avoid && { avoid }), signal: this.#stop.signal });
    } catch (error) {
      // An answer of the site is more than an error.
      if (this.#blocked && !this.#stop.signal.aborted) return this.#blocked.handOver();
      this.#blocked?.drop();
      return this.#handler.onError(this.#stop.signal.aborted ? (this.#stop.signal.reason ?? error) : error);
    }
    this.#blocked?.drop();
    this.#blocked = undefined;
    let agent;
    try {
      agent = this.#through(lease);
    } catch (error) {
      // The proxy is not for this client.
      lease.release();
      return this.#handler.onError(error);
    }
    const attempt = (this.#attempt = new Attempt(lease, this.#handler, this.#stop.signal, () => this.#repeats(attempt)));
    try {
      agent.dispatch(this.#options, attempt);
    } catch (error) {
      attempt.onError(error);
    }
  }

  /** Asks whether an attempt whose answer is a block is to be repeated, and begins with that. */
  #repeats(attempt) {
    // Of a lease that is over nothing is observed.
    if (!this.#left || !attempt.lease.valid || this.#stop.signal.aborted) return false;
    this.#left -= 1;
    this.#blocked = attempt;
    attempt.lease.release();
    this.#next();
    return true;
  }
}

/** One attempt: the handler of `undici` for a request through a lease. */
class Attempt {
  #handler;
  #signal;
  #repeats;
  /** What came of an answer that is kept. */
  #kept;
  #isDropped = false;

  constructor(lease, handler, signal, repeats) {
    this.lease = lease;
    this.#handler = handler;
    this.#signal = signal;
    this.#repeats = repeats;
    for (const name of ["onBodySent", "onRequestSent", "onResponseStarted"]) {
      if (handler[name]) this[name] = (...told) => handler[name](...told);
    }
  }

  onConnect(abort) {
    if (this.#signal.aborted) abort(this.#signal.reason);
    this.abort = abort;
  }

  onUpgrade(status, headers, socket) {
    socket.once("close", () => this.lease.release());
    return this.#handler.onUpgrade(status, headers, socket);
  }

  onHeaders(status, headers, resume, text) {
    if (status < 200) return this.#handler.onHeaders(status, headers, resume, text);
    const advice = this.lease.observe({ status, headers: plain(headers) });
    this.#kept = [() => this.#handler.onHeaders(status, headers, resume, text) !== false && resume()];
    // `wait` means that the site blocks every exit.
    if (advice === "give_back" && this.#repeats()) return false;
    this.#kept = undefined;
    return this.#handler.onHeaders(status, headers, resume, text);
  }

  onData(chunk) {
    return this.#tell(() => this.#handler.onData(chunk)) ?? false;
  }

  onComplete(trailers) {
    this.lease.release();
    this.#tell(() => this.#handler.onComplete(trailers));
  }

  onError(error) {
    if (!this.#isDropped && !this.#kept && !this.#signal.aborted) this.lease.observe(error);
    this.lease.release();
    this.#tell(() => this.#handler.onError(error));
  }

  /** Hands the answer over that was kept, with all that came of it meanwhile. */
  handOver() {
    const kept = this.#kept;
    this.#kept = undefined;
    for (const told of kept) told();
  }

  /** Gives the answer up that was kept. */
  drop() {
    this.#isDropped = true;
    this.#kept = undefined;
    this.abort?.(new Error("the site blocked this exit, and the request goes through another one"));
  }

  #tell(told) {
    if (this.#isDropped) return false;
    if (!this.#kept) return told();
    this.#kept.push(told);
    return false;
  }
}

/** The headers that an answer came with, as an object. */
function plain(raw) {
  const headers = {};
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = String(raw[at]).toLowerCase();
    const value = [raw[at + 1]].flat().join(", ");
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}

/** A handler of `undici` 7 or later with the methods of those before, which each version takes. */
function legacy(handler, util) {
  if (typeof handler.onRequestStart !== "function") return handler;
  let [abort, resume] = [() => {}, () => {}];
  const controller = {
    aborted: false,
    reason: null,
    paused: false,
    rawHeaders: null,
    rawTrailers: null,
    abort(reason) {
      if (this.aborted) return;
      Object.assign(this, { aborted: true, reason });
      abort(reason);
    },
    pause() {
      this.paused = true;
    },
    resume() {
      if (this.paused) {
        this.paused = false;
        resume();
      }
    },
  };
  const sent = ["onBodySent", "onRequestSent", "onResponseStarted"].filter((name) => handler[name]);
  return {
    ...Object.fromEntries(sent.map((name) => [name, (...told) => handler[name](...told)])),
    onConnect(given) {
      abort = given;
      handler.onRequestStart(controller, {});
    },
    onUpgrade(status, headers, socket) {
      controller.rawHeaders = headers;
      handler.onRequestUpgrade?.(controller, status, util.parseHeaders(headers), socket);
    },
    onHeaders(status, headers, given, text) {
      [resume, controller.rawHeaders] = [given, headers];
      handler.onResponseStart?.(controller, status, util.parseHeaders(headers), text);
      return !controller.paused;
    },
    onData(chunk) {
      handler.onResponseData?.(controller, chunk);
      return !controller.paused;
    },
    onComplete(trailers) {
      controller.rawTrailers = trailers;
      handler.onResponseEnd?.(controller, util.parseHeaders(trailers ?? []));
    },
    onError(error) {
      handler.onResponseError?.(controller, error);
    },
  };
}
