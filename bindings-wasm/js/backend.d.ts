import type { Secret, operations } from "hopline";

/** The name of an operation: that of its method of `AgentClient` or `ResellerClient`. */
export type OperationName = keyof typeof operations;

type Awaitable<T> = T | Promise<T>;

/** An operation that a page asks for. */
export interface RelayCall {
  operation: OperationName;
  /** The parameters of its path, such as `session_id`. */
  params: Record<string, string>;
}

/** Answers a request of a page. */
export type Relay = (request: Request) => Promise<Response>;

/** The options of a relay. */
export interface RelayOptions {
  /** The address of the service. Default: the environment variable HOPLINE_BASE_URL. */
  baseUrl?: string | undefined;
  /**
   * The key of the agent API, or a function that finds the key for a request. Default: the environment variable HOPLINE_API_KEY. It stays
   * on the server.
   */
  apiKey?: string | Secret | ((request: Request) => Awaitable<string | Secret>) | undefined;
  /** For operations of the reseller API: finds the token of a login for a request, such as `reseller.token` of a client of the server. */
  token?: string | Secret | ((request: Request) => Awaitable<string | Secret>) | undefined;
  /** The path of the relay on this server, such as `"/api/v1"`. The page's client has it as its `baseUrl`. */
  mount: string;
  /** The operations that are passed on, all of one API. */
  allow: readonly OperationName[];
  /**
   * Says who asks, before anything is passed on: a user by the name of an account of your own, `false` if this user may not do this, or an answer of your
   * own, such as `refuse(401, "log in first")`. If it throws, the request is refused.
   */
  authorize: (request: Request, call: RelayCall) => Awaitable<{ account: string } | Response | false>;
  /**
   * Checks a request with its body, parsed from JSON: which products, how much, how many. Return `refuse(422, …)` to refuse it. If it throws,
   * the request is refused. With it, a body that is not JSON, or in which a member stands twice, is refused.
   */
  check?: ((call: RelayCall & { account: string; body: unknown }) => Awaitable<Response | void>) | undefined;
  /**
   * The addresses of the pages that may use the relay, such as `"https://app.example"`. Default: those with the host of the request. Name
   * them where the page has another address than the relay, or where a proxy changes the header `Host`.
   */
  origins?: readonly string[] | undefined;
  /** The longest body, in bytes. Default: 16 384. */
  maxBody?: number | undefined;
  /** The longest wait for an answer of the service, in milliseconds. Default: 25 000, longer than the 20 000 that the page's client waits. */
  timeoutMs?: number | undefined;
  /** Sends a request to the service. Default: `globalThis.fetch`. The function must not repeat a request. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Hears of each request that was passed on. 502 means that no answer came. */
  onAnswer?: ((told: { operation: OperationName; account: string; status: number; ms: number }) => void) | undefined;
}

/**
 * Makes the relay between a page, whose client has no key, and the service. It keeps the rules of a backend: passes the idempotency key on,
 * repeats nothing, follows no redirect, gives a lost answer no envelope, and passes no other path or header on.
 */
export function relay(options: RelayOptions): Relay;

/**
 * Makes a refusal of the backend's own, of a request that was not passed on. The page's call then fails as `refused`, and bought nothing.
 * With 429 the page's client waits, `retryAfter` seconds if given, and asks again. Other statuses throw: they would be taken for answers
 * of the service.
 */
export function refuse(status: 401 | 403 | 404 | 413 | 422 | 429, message: string, options?: { retryAfter?: number | undefined }): Response;

/** A request of `node:http`, as far as `toNode` uses it. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Record<string, string | string[] | undefined>;
}

/** A response of `node:http`, as far as `toNode` uses it. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  write(chunk: Uint8Array): boolean;
  end(): unknown;
}

/** Makes a relay a handler of `node:http` and Express. Put it before whatever reads bodies, such as `express.json()`. */
export function toNode(relay: Relay): (request: NodeRequest, response: NodeResponse) => Promise<void>;
