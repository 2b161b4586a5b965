// Crawlee 3 over a pool of sessions: an HTTP client that leases a session for each request. crawlee.d.ts documents it.
import { HoplineError } from "hopline";

/** The reasons of a pool without any session that works: other requests would not get one, either. Any other is about one target, or a moment. */
const STUCK = new Set([
  "out_of_stock", "price", "session_limit", "balance", "budget", "cap", "no_answer", "backend", "store", "short_lived", "not_ready", "failing", "request", "account", "replaced", "paused", "draining", "in_doubt", "over", "left",
]);
/** So long until a request asks again that was told at once that it would get no session in its time. */
const AGAIN_MS = 1000;
/** The time for a request, unless Crawlee says otherwise: its own default. */
const NAVIGATION_MS = 30_000;
/** The member of a Crawlee session's data with the exit that its cookies are for. */
const EXIT = "hoplineExit";
/** A proxy's answer to a CONNECT, in the words of got-scraping: the port of the lease has observed it. */
const OBSERVED = /proxy responded with/i;

export class HoplineHttpClient {
  #pool;
  #client;
  #onStuck;
  #timeoutMs;
  #errors;
  #stuckSince;
  #hasGivenUp = false;

  constructor(pool, { client, onStuck, timeoutMs = 600_000 } = {}) {
    if (typeof pool?.acquire !== "function") throw new TypeError("HoplineHttpClient takes a pool of `agent.openPool`");
    const { GotScrapingHttpClient, ...errors } = crawlee();
    [this.#pool, this.#client, this.#onStuck, this.#timeoutMs, this.#errors] = [pool, client ?? new GotScrapingHttpClient(), onStuck, timeoutMs, errors];
  }

  async sendRequest(request) {
    return this.#through(request, async (given, lease) => {
      const answer = await this.#client.sendRequest(given);
      this.#observe(lease, answer);
      lease.release();
      return answer;
    });
  }

  async stream(request, onRedirect) {
    return this.#through(request, async (given, lease) => {
      const answer = await this.#client.stream(given, onRedirect);
      // Crawlee reads most pages, and leaves those alone whose type it does not know: the time for the request ends them.
      const late = setTimeout(() => answer.stream.destroy(), given.timeout.request).unref();
      for (const event of ["close", "end", "error"]) {
        answer.stream.once(event, () => {
          clearTimeout(late);
          lease.release();
        });
      }
      this.#observe(lease, answer);
      return answer;
    });
  }

  /** Sends a request by a lease of its own, within the time that Crawlee gives it. */
  async #through(request, send) {
    const begun = performance.now();
    const whole = request.timeout?.request ?? NAVIGATION_MS;
    const lease = await this.#lease(request, begun + whole / 2);
    try {
      this.#keepCookies(request.sessionToken, lease);
      // No login stands in what Crawlee's client keeps and shows, and sessions that speak SOCKS5 are taken, too.
      const { url } = await lease.proxy.onLoopback();
      // Less than what is left, so that the exit is observed to be late.
      const left = Math.max(1, (whole - (performance.now() - begun)) * 0.9);
      return await send({ ...request, proxyUrl: url, timeout: { request: left } }, lease);
    } catch (error) {
      if (!(error instanceof this.#errors.RetryRequestError) && !OBSERVED.test(error?.message)) lease.observe(error);
      lease.release();
      throw OBSERVED.test(error?.message) ? new this.#errors.SessionError(error.message) : error;
    }
  }

  /** Plain HTTP is seen by the port of the lease. */
  #observe(lease, { statusCode: status, headers, url }) {
    if (new URL(url).protocol === "https:") lease.observe({ status, headers });
  }

  async #lease({ url, sessionToken }, end) {
    const terms = { target: new URL(url).hostname, ...(sessionToken?.id && { key: sessionToken.id }) };
    for (;;) {
      const left = end - performance.now();
      try {
        const lease = await this.#pool.acquire({ ...terms, timeoutMs: Math.max(0, Math.ceil(left)) });
        this.#stuckSince = undefined;
        return lease;
      } catch (error) {
        await this.#afterRefusal(error, end);
      }
    }
  }

  /** Rests before the next try, or throws what Crawlee makes of it. */
  async #afterRefusal(error, end) {
    const { NonRetryableError, RetryRequestError, SessionError } = this.#errors;
    const { message, reason, retry_at } = error;
    if (!(error instanceof HoplineError) || error.kind !== "unavailable") throw new NonRetryableError(message, { cause: error });
    const isStuck = STUCK.has(reason);
    const left = end - performance.now();
    if (!isStuck) {
      if (left > 0) return rest(Math.min(AGAIN_MS, left));
      throw new SessionError(message);
    }
    this.#stuckSince ??= performance.now();
    const byItself = retry_at !== undefined || reason === "store";
    if (byItself && performance.now() - this.#stuckSince < this.#timeoutMs && !this.#hasGivenUp) {
      if (left > 0) return rest(Math.min(AGAIN_MS, left));
      // Such attempts count for nothing.
      throw new RetryRequestError(message);
    }
    if (!this.#onStuck) throw new NonRetryableError(message, { cause: error });
    if (!this.#hasGivenUp) {
      this.#hasGivenUp = true;
      this.#onStuck(message);
    }
    throw new RetryRequestError(message);
  }

  /** Ends a Crawlee session that was used with another exit: its cookies, and those of an answer that is still to come, belong to that one. */
  #keepCookies(session, { sessionId, generation }) {
    if (!session?.userData) return;
    const exit = `${sessionId}/${generation}`;
    if ((session.userData[EXIT] ??= exit) === exit) return;
    session.retire();
    throw new this.#errors.RetryRequestError("the session's exit has changed");
  }
}

const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The needed part of Crawlee: the program's own copy, since a crawler knows its errors by their classes. */
function crawlee() {
  for (const load of [() => require("@crawlee/core"), () => require("crawlee")]) {
    try {
      return load();
    } catch (error) {
      if (error?.code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  throw new Error("hopline/crawlee needs Crawlee 3.12 or later: npm install crawlee");
}
