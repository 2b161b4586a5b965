// Crawlee 3 for JavaScript over a pool of sessions.
import type { BaseHttpClient, HttpRequest, HttpResponse, RedirectHandler, ResponseTypes, StreamingHttpResponse } from "@crawlee/core";
import type { Pool } from "hopline";

/** The options of a `HoplineHttpClient`. */
export interface HoplineHttpClientOptions {
  /** Crawlee's client that sends the requests. Default: a new `GotScrapingHttpClient`, as Crawlee's own default. */
  client?: BaseHttpClient | undefined;
  /**
   * Called once with a sentence when no request can get a session any more, such as `(why) => crawler.stop(why)`: the pages stay in Crawlee's
   * queue. Without it they fail with the sentence.
   */
  onStuck?: ((why: string) => unknown) | undefined;
  /** How long crawls wait for a pool that can't get any session, where time may help. Default: 600 000. */
  timeoutMs?: number | undefined;
}

/**
 * An HTTP client for Crawlee's crawlers, as their option `httpClient`: each request leases a session, with the id of Crawlee's session as the key,
 * and gives it back once its body is read. Answers and failures are observed. Give a crawler no `proxyConfiguration` besides.
 */
export class HoplineHttpClient implements BaseHttpClient {
  constructor(pool: Pool, options?: HoplineHttpClientOptions);
  sendRequest<Type extends keyof ResponseTypes = "text">(request: HttpRequest<Type>): Promise<HttpResponse<Type>>;
  stream(request: HttpRequest, onRedirect?: RedirectHandler): Promise<StreamingHttpResponse>;
}
