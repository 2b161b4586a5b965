import { Alarm } from "./clock.js";
import { connected } from "./connections.js";
import { plain } from "./error.js";
import { secretsIn } from "./words.js";

/**
 * One request over `fetch`, and its outcome: a response, or `{ kind, sent }`. The exchange decides nothing: no redirect is followed and
 * nothing is sent twice. `before` recognises failures that certainly came before the first byte, for the errors of its own `fetch` only;
 * any other request may have been sent. Events after the end are ignored.
 */
export function exchange({ fetch, isGiven, before, connection, secrets, more }, { url, method, headers, body, timeoutMs, maxBody, names }) {
  const abort = new AbortController();
  const { signal } = abort;
  const chunks = [];
  /** The connection of its own that a write gets: a used one may be closing, or an answer that belongs to no request may be on its way there. */
  let own;
  /** A response whose body is being read. */
  let response;
  let [reader, alarm, end] = [];
  const came = new Promise((resolve) => (end = resolve));
  const ends = (outcome) => {
    alarm?.clear();
    end(outcome);
    own?.destroy?.().catch(() => {});
  };

  /** A connection whose rest is not wanted is closed. A body of the caller's own may do anything then. */
  const close = () => Promise.resolve().then(() => reader?.cancel()).catch(() => {});

  /** Reads a body up to its limit. A body that breaks off is cut short, too. */
  const read = async (from) => {
    reader = from.body?.getReader?.();
    let [length, truncated] = [0, false];
    const keep = (chunk) => {
      const kept = chunk.subarray(0, maxBody - length);
      truncated = kept.length < chunk.length;
      length += kept.length;
      chunks.push(kept);
    };
    try {
      if (reader) for (let next; !truncated && !(next = await reader.read()).done; ) keep(next.value);
      else if (typeof from.arrayBuffer === "function") keep(new Uint8Array(await from.arrayBuffer()));
    } catch {
      truncated = true;
    }
    if (truncated) close();
    return { ...response, body: join(chunks), truncated };
  };

  const run = async () => {
    // Chosen now, since the program's settings may have changed while the store was asked.
    own = method === "GET" ? undefined : connected(connection);
    const given = await fetch(url, { method, headers, body, redirect: "manual", cache: "no-store", signal, ...own?.option });
    if (signal.aborted) {
      // A `fetch` that ignores its signal: the body would keep its connection.
      await given?.body?.cancel?.();
      throw signal.reason;
    }
    const { status } = given;
    if (!Number.isInteger(status) || status < 0 || status > 999) throw new Error("what `fetch` gave is no response");
    const found = [];
    for (const name of names) {
      const value = given.headers?.get(name);
      // No header has more than one line.
      if (typeof value === "string" && !value.includes("\n")) found.push(name, value);
    }
    // A browser shows nothing else of a redirect, not even its status.
    const error = given.type === "opaqueredirect" ? new Error("the service answered with a redirect, which is not followed") : undefined;
    response = { status, headers: found.join("\n"), error };
    return read(given);
  };

  /** The outcome if `fetch` threw: any value, even one that throws when it is read. */
  const failed = (error) => {
    try {
      const what = before?.(error) ?? { kind: error?.cause ? "closed" : "other", sent: "maybe" };
      return { ...what, error: plain(error, { secrets: [...secrets(), ...held(headers, body)], more: more?.(), isGiven }) };
    } catch {
      return { kind: "other", sent: "maybe", error: new Error("`fetch` threw something that can't be read") };
    }
  };

  /** Gives up. A response whose time is over is cut short, and its status is worth keeping. */
  const stop = (kind) => {
    ends(kind === "timeout" && response ? { ...response, body: join(chunks), truncated: true } : { kind, sent: "maybe" });
    abort.abort(kind);
    close();
  };

  /** Sends the request, and returns its outcome. Even a `fetch` that ignores its signal is not waited for. */
  const send = () => {
    alarm = new Alarm(() => stop("timeout"), timeoutMs);
    run().then(ends, (error) => ends(failed(error)));
    return came;
  };

  return { signal, send, stop };
}

/** The headers that hold no secret. */
const PLAIN = new Set(["accept", "content-type", "user-agent"]);

/** The secrets in a request: of its headers, the values with the word before them and without. */
function held(headers, body) {
  const values = headers.filter(([name]) => !PLAIN.has(name.toLowerCase())).flatMap(([, value]) => [value, value.split(" ").at(-1)]);
  const members = body ? secretsIn(JSON.parse(new TextDecoder().decode(body))) : [];
  return [...values, ...members].filter((text) => text.length > 3);
}


/** Several pieces of bytes as one. */
export function join(chunks) {
  if (chunks.length === 1) return chunks[0];
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
