import { plain } from "./error.js";

/**
 * One request over `fetch`, and what came of it: a response, or `{ kind, sent }`. It decides nothing: no redirect is
 * followed and nothing is sent twice. What surely came before the first byte is for `before` to say, which knows the
 * errors of its own `fetch` only; anything else may have been sent.
 */
export async function exchange({ fetch, before, secrets, more }, request, abort, names) {
  const timer = setTimeout(() => abort.abort("timeout"), request.timeoutMs);
  const stopped = new Promise((_, reject) => {
    abort.signal.addEventListener("abort", () => reject(abort.signal), { once: true });
  });
  stopped.catch(() => {});
  // Even a `fetch` that does not heed the signal is not waited for.
  const unlessStopped = (promise) => Promise.race([promise, stopped]);
  try {
    const { url, method, headers, body } = request;
    const options = { method, headers, body, redirect: "manual", cache: "no-store", signal: abort.signal };
    const response = await unlessStopped(fetch(url, options));
    const status = response.status;
    if (!Number.isInteger(status) || status < 0 || status > 999) throw new Error("what `fetch` gave is no response");
    const found = names.flatMap((name) => {
      const value = response.headers?.get(name);
      return typeof value === "string" ? [name, value] : [];
    });
    // A browser shows nothing else of it, not even its status.
    const error = response.type === "opaqueredirect" ? new Error("the service answered with a redirect, which is not followed") : undefined;
    return { status, headers: found, error, ...(await read(response, request.maxBody, unlessStopped, abort.signal)) };
  } catch (error) {
    if (abort.signal.aborted) return { kind: abort.signal.reason, sent: "maybe" };
    return { ...(before?.(error) ?? { kind: error?.cause ? "closed" : "other", sent: "maybe" }), error: plain(error, [...secrets(), ...held(request.headers)], more) };
  } finally {
    clearTimeout(timer);
  }
}

/** What headers hold, which may be secret: with the word before it and without. */
function held(headers) {
  return headers.flatMap(([, value]) => [value, value.split(" ").at(-1)]).filter((text) => text.length > 3);
}

/** Reads a body up to its limit. One that breaks off is cut short too, and its status is worth keeping. */
async function read(response, limit, unlessStopped, signal) {
  const chunks = [];
  let length = 0;
  let truncated = false;
  const reader = response.body?.getReader?.();
  try {
    while (reader && !truncated) {
      const { done, value } = await unlessStopped(reader.read());
      if (done) break;
      const kept = value.subarray(0, limit - length);
      truncated = kept.length < value.length;
      length += kept.length;
      chunks.push(kept);
    }
    if (!reader && typeof response.arrayBuffer === "function") {
      const whole = new Uint8Array(await unlessStopped(response.arrayBuffer()));
      truncated = whole.length > limit;
      chunks.push(whole.subarray(0, limit));
    }
  } catch (error) {
    if (signal.aborted && signal.reason === "aborted") throw error;
    truncated = true;
  } finally {
    // A connection whose rest is not wanted is closed.
    if (truncated) reader?.cancel().catch(() => {});
  }
  return { body: join(chunks), truncated };
}

function join(chunks) {
  const whole = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
