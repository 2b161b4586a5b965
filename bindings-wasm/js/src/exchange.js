import { plain } from "./error.js";

/**
 * One request over `fetch`, and what comes of it: a response, or `{ kind, sent }`. It decides nothing: no redirect is
 * followed and nothing is sent twice. What surely came before the first byte is for `before` to say, which knows the
 * errors of its own `fetch` only; anything else may have been sent. What comes once it has ended is ignored.
 */
export class Exchange {
  #http;
  #request;
  #abort = new AbortController();
  #timer;
  #end;
  #came = new Promise((resolve) => (this.#end = resolve));
  /** A response whose body is being read, and as much of that as has come. */
  #response;
  #reader;
  #chunks = [];

  constructor(http, request) {
    this.#http = http;
    this.#request = request;
  }

  get signal() {
    return this.#abort.signal;
  }

  /** Sends it, and gives what comes of it. Even a `fetch` that does not heed its signal is not waited for. */
  send() {
    this.#timer = setTimeout(() => this.stop("timeout"), this.#request.timeoutMs);
    this.#exchange().then(
      (came) => this.#ends(came),
      (error) => this.#ends(this.#failed(error)),
    );
    return this.#came;
  }

  /** Gives it up. A response whose time is over is cut short, and its status is worth keeping. */
  stop(kind) {
    const isCut = kind === "timeout" && this.#response;
    this.#ends(isCut ? { ...this.#response, body: join(this.#chunks), truncated: true } : { kind, sent: "maybe" });
    this.#abort.abort(kind);
    this.#close();
  }

  #ends(came) {
    clearTimeout(this.#timer);
    this.#end(came);
  }

  async #exchange() {
    const { url, method, headers, body, names, maxBody } = this.#request;
    // A browser's own is no method of an object of ours.
    const { fetch } = this.#http;
    const response = await fetch(url, { method, headers, body, redirect: "manual", cache: "no-store", signal: this.signal });
    if (this.signal.aborted) throw this.signal.reason;
    const { status } = response;
    if (!Number.isInteger(status) || status < 0 || status > 999) throw new Error("what `fetch` gave is no response");
    const found = [];
    for (const name of names) {
      const value = response.headers?.get(name);
      // No header has more than one line.
      if (typeof value === "string" && !value.includes("\n")) found.push(name, value);
    }
    // A browser shows nothing else of it, not even its status.
    const error = response.type === "opaqueredirect" ? new Error("the service answered with a redirect, which is not followed") : undefined;
    this.#response = { status, headers: found.join("\n"), error };
    return { ...this.#response, ...(await this.#read(response, maxBody)) };
  }

  /** Reads a body up to its limit. One that breaks off is cut short, too. */
  async #read(response, limit) {
    const reader = (this.#reader = response.body?.getReader?.());
    let [length, truncated] = [0, false];
    const keep = (chunk) => {
      const kept = chunk.subarray(0, limit - length);
      truncated = kept.length < chunk.length;
      length += kept.length;
      this.#chunks.push(kept);
    };
    try {
      if (reader) for (let next; !truncated && !(next = await reader.read()).done; ) keep(next.value);
      else if (typeof response.arrayBuffer === "function") keep(new Uint8Array(await response.arrayBuffer()));
    } catch {
      truncated = true;
    }
    if (truncated) this.#close();
    return { body: join(this.#chunks), truncated };
  }

  /** A connection whose rest is not wanted is closed. */
  async #close() {
    try {
      await this.#reader?.cancel();
    } catch {
      // A body of the caller's own may do anything then.
    }
  }

  /** What came of it where `fetch` threw: anything, even what breaks when it is looked at. */
  #failed(error) {
    const { before, secrets, more } = this.#http;
    try {
      const what = before?.(error) ?? { kind: error?.cause ? "closed" : "other", sent: "maybe" };
      return { ...what, error: plain(error, [...secrets(), ...held(this.#request.headers)], more) };
    } catch {
      return { kind: "other", sent: "maybe", error: new Error("`fetch` threw something that can't be read") };
    }
  }
}

/** What headers hold, which may be secret: with the word before it and without. */
function held(headers) {
  return headers.flatMap(([, value]) => [value, value.split(" ").at(-1)]).filter((text) => text.length > 3);
}

function join(chunks) {
  if (chunks.length === 1) return chunks[0];
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
