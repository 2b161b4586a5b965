/// <reference lib="esnext.disposable" />

/** Any JSON: the contract does not document its content, so check it before you use it. */
export type Json = unknown;

/**
 * An answer with the members that its type does not have, since they are undocumented: `(session as Undocumented<Session>).zone`. Every
 * answer keeps such members as the service wrote them.
 */
export type Undocumented<Answer> = Answer & { readonly [member: string]: unknown };

/** `AbortSignal`, if the environment's types have one. */
type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Found } } ? Found : any;

/** A word of a list that the service may extend. */
export type Open<Word extends string> = Word | (string & {});

/**
 * A username, password, token or email address in an answer: `reveal()` returns its text. A secret prints, logs and stringifies as
 * `[redacted]`. Copies by spread, Immer, Redux, Vue and TanStack Query keep it; `structuredClone` and `postMessage` drop its text. Equal
 * texts are the same object. Pass it on as it is, wherever a client takes its text.
 */
export class Secret {
  private constructor();
  /** A number that distinguishes it from the others of this program. */
  readonly serial: number;
  /** Returns the text. */
  readonly reveal: () => string;
  /** `[redacted]`. */
  toString(): string;
  /** `[redacted]`. */
  toJSON(): string;
}

/** The facts about an answer, beside itself. */
export interface Meta {
  /** The request id, to quote when reporting a problem. */
  readonly requestId?: string;
  /** The HTTP status; absent if no request was sent. */
  readonly httpStatus?: number;
  /** The number of sends. */
  readonly attempts: number;
  /** Of a read with `until`: `ready` if its condition holds, `pending` at the deadline. Of a session or an order: its phase. */
  readonly phase?: Phase;
  /** The text of the service's `data`, digit for digit. The text may hold secrets, so it is not enumerable. */
  readonly raw: string;
}

/**
 * Returns the facts about an answer: about the object that a call returned, not a copy. `undefined` for anything else, and for an answer
 * that is not an object.
 */
export function meta(answer: unknown): Meta | undefined;

/** The part of `fetch` that a client uses. */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: [string, string][];
    /** A `Uint8Array`, or `undefined`. */
    body: any;
    redirect: "manual";
    cache: "no-store";
    signal: Signal;
  },
) => Promise<FetchResponse>;

/** The part of a `Response` that a client uses. */
export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: { getReader(): { read(): Promise<{ done: boolean; value?: any }>; cancel(): Promise<void> } } | null;
}

/** The condition that ends a repeated read: the value at `at` is one of `is`, or a number of at least `atLeast`. */
export interface Until {
  /** The place of the value in the answer, a JSON pointer (RFC 6901) such as `/status`. */
  at: string;
  /**
   * The values that end the read; a value that is not a text is compared by its JSON, such as `true`. One of `is` and `atLeast` is
   * required.
   */
  is?: string[] | undefined;
  /** The least number that ends the read; a text is compared digit for digit. */
  atLeast?: number | string | undefined;
}

/**
 * A choice of a product: the cheapest one of the account's own list that fits. `cheapest` makes one. Prices are compared within one unit.
 * Products in another currency than USD, without enough stock or not available are passed over, and so are shared ones, unless `sharing`
 * or the `project_id` of the purchase is set.
 */
export interface Cheapest {
  readonly session_type: "dynamic" | "static";
  readonly country?: string | undefined;
  readonly city?: string | undefined;
  readonly sharing?: "exclusive" | "shared" | undefined;
  readonly project_id?: string | undefined;
  readonly unit?: string | undefined;
  readonly max_unit_price?: number | string | undefined;
}

/** The properties of the product that `cheapest` chooses. */
export interface CheapestOptions {
  type: "dynamic" | "static";
  /** The country, as the product has it. */
  country?: string | undefined;
  /** The city, as the product has it. */
  city?: string | undefined;
  sharing?: "exclusive" | "shared" | undefined;
  /** The project of the purchase, with which shared products fit, too. */
  projectId?: string | undefined;
  /** The unit of the price, required where products with several units fit. */
  unit?: string | undefined;
  /** The highest price of one unit, in USD. Without any limit nothing dearer than the first choice is bought. */
  maxUnitPrice?: number | string | undefined;
}

/** The HTTP client that a session's proxy is for: `undici`, `Playwright`, or `curl`. */
export type UseWith = "undici" | "playwright" | "curl";

/** The choice of the cheapest product that fits, for `product` of `openSession`, `createSession` and `openPool`. */
export function cheapest(options: CheapestOptions): Cheapest;

/**
 * A handle of a session that was opened. Its members show the newest state that its client has read, by any call: members that a read did
 * not request, such as the login, keep their values.
 */
export class OpenSession implements AsyncDisposable {
  private constructor();
  /** The session's id: the handle for all further operations. */
  readonly session_id: string;
  /** The charge of its purchase in USD, where the service stated it. */
  readonly charged_usd?: string;
  /** The phase at the end of the last wait; `ended` once the session was terminated through a handle. */
  readonly phase: Phase;
  /** The last read of the session. */
  readonly session: Session;
  /** The number of known changes of its exit or login: make new connections when it has grown. */
  readonly generation: number;
  /** The proxy in the formats of HTTP clients. Throws `invalid` if the login is not known: open the session with `credentials`. */
  get proxy(): ProxySettings;
  /** Waits on until the session is usable or over. */
  wait(options?: SessionOptions): Promise<OpenSession>;
  /** Gives the session another exit address. If `session` shows its login, so does the answer, unless `include_credentials` is false. */
  rotate(params?: Omit<RotateSession, "session_id">, options?: KeyedOptions): Promise<Session>;
  /** Reads the session, with its login if that is known. */
  refresh(options?: ReadOptions): Promise<Session>;
  /** Lengthens the session. */
  renew<Answer = unknown>(params: Omit<RenewSession, "session_id">, options?: RenewOptions): Promise<Answer>;
  /** Ends the session. Then its `phase` is `ended`, and `session` has the status from the service, if there is one. */
  terminate<Answer = unknown>(options?: WriteOptions): Promise<Answer>;
  /** Returns advice after an observation through the session; with `autoRotate`, as `observe` of the client does. */
  observe(seen: Seen, options?: ObserveOptions): Promise<Verdict | undefined>;
  /** Releases the session for other clients of the store, without ending it. Returns true if this client held it. */
  release(): Promise<boolean>;
  /** Terminates the session if it was bought here, is dynamic, and was not to be kept; otherwise releases it. `await using` calls this. */
  dispose(): Promise<void>;
  /** Calls `dispose`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options for acquiring a lease. */
export interface AcquireOptions {
  /** The target of the requests, such as a host: blocks that are observed for it count for this target alone. */
  target?: string | undefined;
  /** A key for a sticky session: the same key gets the same session, as long as this client has it and its exit has not changed. */
  key?: string | undefined;
  /**
   * A session that is not wanted, by its id, such as that of the attempt before: another one is lent, and bought if there is none. In a
   * pool of one session this waits in vain.
   */
  avoid?: string | undefined;
  /** The longest wait for a session, in milliseconds. Default: 30 000. */
  timeoutMs?: number | undefined;
  /** Cancels the wait. A purchase that is under way goes on, for the next caller. */
  signal?: Signal | undefined;
}

/**
 * Lends sessions, at most `size` at a time over all processes that share the store; Node only. Sessions are bought when a caller waits, or
 * ahead of demand with `keepReady`. An open pool works in the background until it or its client is closed.
 */
export interface Pool extends AsyncDisposable {
  /** The name of the pool. */
  readonly name: string;
  /**
   * Acquires a lease, passes it to a function, and gives it back when that has ended, or thrown. Returns the function's result, or throws
   * what it threw. The pool knows of a failed request only what `observe` is given.
   *
   * @throws {HoplineError} `unavailable` if no session is free in time, at once if none can be; its message gives the counts, `reason` a
   * word, and `retry_at`, if known, the time at which one may be there.
   */
  withLease<T>(use: (lease: Lease) => Promise<T> | T): Promise<T>;
  withLease<T>(options: AcquireOptions, use: (lease: Lease) => Promise<T> | T): Promise<T>;
  /**
   * Waits for a free session. First come, first served. Give the lease back by `release` or `using`.
   *
   * @throws {HoplineError} `unavailable` as of `withLease`, `cancelled` by its signal or when the pool is closed.
   */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /**
   * Returns a dispatcher of the package `undici`, version 6, 7 or 8, which must be installed: `fetch(url, { dispatcher })`, with Node's own
   * `fetch` or that of the package, `request(url, { dispatcher })`, and `setGlobalDispatcher(dispatcher)` for all requests of a program.
   *
   * Each request has a lease of its own, for the host of its URL, until its body is read or breaks off. Answers and failures are observed.
   * A GET, HEAD or OPTIONS that was blocked is sent again at most twice, each time through another session, unless its body can be read once
   * only. Each exit has connections of its own, which are closed when it changes, and with the pool. Where the pool has no session, the
   * request fails with `unavailable`, which is the `cause` of the error of `fetch`. HTTP proxies only.
   */
  dispatcher(options?: PoolDispatcherOptions): any;
  /**
   * Returns the status. With `everywhere` the slots of other clients are read from the store first; otherwise they count as this client saw
   * them last, or as `unknown`.
   */
  status(options?: { everywhere?: boolean | undefined }): Promise<PoolStatus>;
  /** Waits until that many sessions are free, at most `keepReady` of the pool. Default: 1, for at most 300 000 ms. */
  waitReady(count?: number, options?: { timeoutMs?: number | undefined; signal?: Signal | undefined }): Promise<void>;
  /** Stops buying until `resume`, in every client of the store, also in those that open the pool later. Existing sessions are lent. */
  pause(): Promise<void>;
  /** Buys again, in every client of the store, even if the pool was drained or had stopped until a person or program acts. */
  resume(): Promise<void>;
  /** Stops lending, waits for leases (`graceMs`, default 10 000 ms), and releases the sessions for other clients. */
  close(options?: { graceMs?: number | undefined }): Promise<void>;
  /**
   * Closes the pool and terminates the dynamic sessions of this client; with `everywhere` those of all clients and those that none of them
   * has. Static sessions are terminated only with `includeStatic`. Prepaid traffic is lost, and nothing is refunded. The pool stays paused
   * until `resume`, in every client of the store.
   *
   * `graceMs` (default 10 000 ms, at least 5000) is the time for all of that: its last 5000 ms, or half of less than 10 000, are for
   * terminating sessions; until then leases are waited for.
   *
   * @throws {HoplineError} `unavailable`, which names the sessions, if some still live at the end of that time, and `misuse` if the pool is
   * closed.
   */
  drain(options?: { graceMs?: number | undefined; everywhere?: boolean | undefined; includeStatic?: boolean | undefined }): Promise<void>;
  /** Calls `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options of a pool's dispatcher. */
export interface PoolDispatcherOptions {
  /** A key for a sticky session, for all requests of the dispatcher. */
  key?: string | undefined;
  /** How long a request waits for a session. Default: 90 000. */
  timeoutMs?: number | undefined;
  /** Options of undici's `ProxyAgent`, such as `requestTls: { ca }` for an authority of one's own. */
  [ofProxyAgent: string]: unknown;
}

/** A lent session. Its exit does not change during the lease. A lease that is garbage-collected goes back by itself. */
export interface Lease extends Disposable {
  readonly sessionId: string;
  /** The proxy of the session. */
  readonly proxy: ProxySettings;
  /** The generation, which grows whenever the session gets another exit or other credentials. */
  readonly generation: number;
  /** The slot of the session in the pool, 0 to `size` - 1. */
  readonly slot: number;
  /** The target of the lease. */
  readonly target: string | undefined;
  /** True as long as the lease is this client's: until it was given back, or another client may have it. */
  readonly valid: boolean;
  /**
   * A place for what belongs to this exit, such as cookies or an HTTP client: the next lease of the same exit finds it, and it is empty for
   * a new exit. Members that are JSON, up to 4 KB together, are kept by the store when the lease is given back, so another process finds
   * them too, as whoever had the session last left them; the others stay in this client.
   */
  readonly data: { [name: string]: any };
  /**
   * Reports an observation from a request, and returns advice: keep the lease, give it back and acquire again, or give it back and wait
   * until `retryAt`. The pool's `blocked` is asked of a response first. Nothing is sent or repeated, and nothing is bought unless the pool
   * was opened with `replace: "failing"`.
   */
  observe(seen: Seen): LeaseAdvice;
  /** The time at which the target is worth another request, as of the last `observe`. It stays when the lease is given back. */
  readonly retryAt: Date | undefined;
  /**
   * Never lends the session again. Once the lease was given back, a dynamic session is terminated and loses its prepaid traffic, and a
   * session in its place is bought when one is needed, unless the pool's `replace` is `never`. A static one is terminated only if `replace`
   * is not `never`. Give the lease back all the same.
   */
  discard(): void;
  /**
   * Returns a `ProxyAgent` of the package `undici`, version 6, 7 or 8, which must be installed: `fetch(url, { dispatcher:
   * lease.dispatcher() })`, with Node's own `fetch` or that of the package. Leases of the same exit share it. HTTP proxies only.
   */
  dispatcher(): any;
  /** Gives the lease back. */
  release(): void;
  /** Calls `release`. */
  [Symbol.dispose](): void;
}

/** A static order at the end of its wait: usable, over, or not yet, at the deadline; `waitOrder` waits on. */
export interface OrderReply {
  /** The order's number: the handle for all further operations. */
  readonly order_no: string;
  /** The phase of the order. */
  readonly phase: Phase;
  /** The order, as the list of static orders shows it. The usernames and passwords of its proxies are a `Secret` each. */
  readonly order: StaticOrder;
}

/**
 * An observation from a request through a session, in a word.
 *
 * - `captcha`: a page that asks for a captcha
 * - `timeout`: no answer in time
 * - `block`: a block that shows in another way
 * - `proxy`: the proxy refused the request, or could not be reached
 * - `target`: the target could not be reached, or failed in another way; this is no observation about the session
 * - `unknown`: a failure that may be the proxy's or the target's, such as a connection that broke off; after three in a row the session has
 *   to be read again, and a pool does that by itself
 */
export type SeenWord = "captcha" | "timeout" | "block" | "proxy" | "target" | "unknown";

/**
 * An observation from a request through a session: an HTTP status, a word, a response, or the error of an HTTP client. An unknown error is
 * a `timeout` or the `proxy`'s failure if its name or its words say so, and else `unknown`.
 */
export type Seen = number | SeenWord | Error | { readonly status: number } | { readonly statusCode: number };

/** The importance of an event to people. */
export type Level = "debug" | "info" | "warn";

/** A log for people, such as `console`. The message names the operation and the event. */
export type Log = { [Name in Level]?: (message: string, event: LoggedEvent) => void };

/** An operation began. `command` is the same for all its events. */
export interface BeganEvent {
  event: "began";
  operation: string;
  command: number;
}

/** An operation ended; if it failed, with the members of its error. */
export interface EndedEvent {
  event: "ended";
  operation: string;
  command: number;
  kind?: HoplineError["kind"] | undefined;
  effect?: HoplineError["effect"] | undefined;
  advice?: HoplineError["advice"] | undefined;
  /** The duration in milliseconds. */
  duration_ms: number;
}

/** A request was sent. `send` is the same for its answer. */
export interface SentEvent {
  event: "sent";
  operation: string;
  command: number;
  method: HttpMethod;
  /** The path of the request, without its query. */
  path: string;
  send: number;
}

/** A request was answered with a status, or failed; an answer whose body broke off has a status, too. */
export interface AnsweredEvent {
  event: "answered";
  operation: string;
  command: number;
  method: HttpMethod;
  send: number;
  /** The HTTP status. */
  status?: number | undefined;
  /** The failure, if there is no status. */
  failure?: "dns" | "connect" | "tls" | "timeout" | "closed" | "aborted" | "late" | "other" | undefined;
  /** The duration in milliseconds. */
  duration_ms: number;
}

/** The store answered a call, or failed. */
export interface StoredEvent {
  event: "stored";
  operation: "store";
  call: "claim" | "put" | "delete" | "release" | "list" | "spend";
  failed: boolean;
  /** The duration in milliseconds. */
  duration_ms: number;
}

/** Claims have ended while the client lives: another client may own its names now. */
export interface ClaimsLostEvent {
  event: "claims_lost";
  operation: "store";
  /** The number of claims; 1 if all ended. */
  claims: number;
}

/** An event of a pool's leases. */
export type LeaseEvent = {
  operation: "acquire";
  /** The pool's name. */
  pool: string;
  /** The wait for it; of an observation and a return, the age of the lease. In milliseconds. */
  duration_ms: number;
} & (
  | { event: "lease_acquired" | "lease_released" }
  | { event: "acquire_failed"; kind: ErrorKind }
  | { event: "lease_observed"; seen: number | SeenWord; advice?: LeaseAdvice | undefined }
  /** The JSON members of a lease's `data` have so many bytes, more than the store keeps: they stay in this client. */
  | { event: "lease_data_too_long"; bytes: number }
);

/** Every event of `onEvent` and `log`. */
export type LoggedEvent = { level: Level } & (ClientEvent | BeganEvent | EndedEvent | SentEvent | AnsweredEvent | StoredEvent | ClaimsLostEvent | LeaseEvent);

/** The options for observing a session. */
export interface ObserveOptions {
  /** Cancels the rotation, unless others wait for it. */
  signal?: Signal | undefined;
}

export interface HoplineError extends ErrorFields {}

/** Every failure of this package. Narrow it by `kind`. */
export class HoplineError extends Error {
  private constructor();
  message: string;
  /**
   * Of the kind `refused`: true if this client refused the operation, and not the service: for the daily cap, the price limit, an account
   * that is not ready, a `settle` that came too early, a `forget` of a session of this client, a record that has changed, a `resume` of an
   * operation that your own backend refused, and a `reconcile` that has nothing to look up.
   */
  get isRefusedByUs(): boolean;
  /**
   * Of the kind `not_ready`: the handle of the session. After `openSession` without an intent, a key and `keep` it has ended, as where a scope
   * is left.
   */
  readonly session?: OpenSession;
  /**
   * The first failure if this one came from a later send, the failure in the store, or the reason of the signal. Of a store's own error it
   * has only the name, unless it is one of the system with `code` and `syscall`: its text may hold a login.
   */
  cause?: unknown;
  /**
   * Returns the error without a server's text, for logs; of a cause, too. `structuredClone` and `postMessage` keep only the message of an
   * error, so pass on this result.
   */
  toJSON(): ErrorFields & { name: string; stack?: string; cause?: object };
}

/**
 * The store of records: data by names, each of which has at most one owner. A client owns the names of its operations under way and of its
 * sessions; for other clients they are busy, until their owner releases them or is gone. Data is JSON as bytes and holds no secret; keep it
 * as it is. A name is `<space>.<kind><hash>`, at most 66 characters of `0-9`, `a-z` and `.`.
 *
 * Write one for a database by these six calls. Each may be repeated and then does nothing new. A call that rejects has failed: it may or
 * may not be done; with an `Error` whose `notOpened` is true it was certainly not done, since the store could not be opened at all. A call
 * must not be done after it has rejected. The repository's `tests/store` has cases, as data, for what every store must do.
 */
export interface Store {
  /**
   * Makes this client the owner of at most `most` of the names that no other living client owns: first those that it owns, then those with
   * data, then the others. Returns them with their data, `undefined` if there is none. If others own all of them the result is busy, with
   * the data that the owner of one of them put last; `here` is true if another client of this process is that owner.
   */
  claim(names: string[], most: number): Promise<{ claimed: Map<string, Uint8Array | undefined> } | { busy: Uint8Array | undefined; here?: boolean | undefined }>;
  /**
   * Keeps data under a name, so that it survives a crash: then the old data is there or the new. `lost` if this client does not own the
   * name, and with `new` if the name is there or another's; then nothing is changed.
   */
  put(name: string, data: Uint8Array, how: PutOptions): Promise<"done" | "lost">;
  /** Deletes the data of a name, and releases the name. `done` also if there is no data, `lost` if the name is not this client's. */
  delete(name: string): Promise<"done" | "lost">;
  /** Releases these names, or all that this client owns. */
  release(names?: string[]): Promise<unknown>;
  /** Returns the names of a space that are there, in the order of their letters, at most 500, and whether more follow. Claims nothing. */
  list(space: string, options: ListOptions): Promise<{ entries: Listed[]; more: boolean }>;
  /**
   * Sets the amount of an entry on a day of a space, and returns the day. If the entry would grow and the day's sum pass the cap, nothing
   * is changed, and the result is the day, and its sum as it stands.
   */
  spend(space: string, what: Spend): Promise<{ granted: number } | { over: string; day: number }>;
  /** Releases all names, since the client is closed. */
  close?(): Promise<unknown>;
  /**
   * True if a call may still be done after it has rejected, as after a time limit. Then a purchase whose record could not be put is never
   * reported as without effect. Default: false.
   */
  lateCalls?: boolean;
  /**
   * Registers `lost`, for a store whose claims can end while their owner lives, as in a database: call it when they did, with the names, or
   * without any for all, and before a claim that was made meanwhile is granted, or the client would forget that one, too.
   */
  onLost?(lost: (names?: string[]) => void): void;
  /**
   * Returns whether the claims stand for the next 20 seconds, for such a store. Called before each request, which is not sent unless they
   * do.
   */
  vouches?(): boolean | Promise<boolean>;
}

/** The way in which data is put. */
export interface PutOptions {
  /** True if the name must not be there; then this client owns it. */
  new?: boolean | undefined;
  /** Milliseconds after which the store may drop the data, unless the name has an owner then. Default: never. */
  keepFor?: number | undefined;
  /** True if this client releases the name in the same step. */
  release?: boolean | undefined;
}

/** The part of a space to list. */
export interface ListOptions {
  /** Only names after this one. */
  after?: string | undefined;
  /** True to leave out data that was put with `keepFor`. */
  open?: boolean | undefined;
}

/** One name of a list. */
export interface Listed {
  name: string;
  data: Uint8Array;
  whose: Whose;
}

/** An entry under a day's cap. Amounts are decimals as text, such as `4.50`. */
export interface Spend {
  /** The UTC day, counted from 1970. Default: today by the store's clock, which never goes back. */
  day?: number | undefined;
  /** The entry. */
  entry: string;
  /** The amount in USD. */
  amount: string;
  /** The cap on the sum of the day's entries, in USD. Default: no cap. */
  cap?: string | undefined;
}

/** Options for tests that depend on time. */
export interface StoreOptions {
  /** The store's clock, in Unix milliseconds; `Date.now` by default. */
  now?: (() => number) | undefined;
}

/**
 * Records as files, in a folder that the processes of a machine share; Node only: elsewhere one can be made, and the first call that needs it fails. A dead client is recognised at once, by a socket in its
 * folder that no process listens on, so the folder must not be shared between machines. The format is Node's own: a folder of Python,
 * Kotlin, Swift or Rust can't be opened.
 */
export class FolderStore implements Store {
  /** Makes a store in the folder of that path, which is made if it is missing. Each client needs a store of its own. */
  constructor(path: string, options?: StoreOptions);
  claim(names: string[], most: number): Promise<{ claimed: Map<string, Uint8Array | undefined> } | { busy: Uint8Array | undefined; here?: boolean | undefined }>;
  put(name: string, data: Uint8Array, how?: PutOptions): Promise<"done" | "lost">;
  delete(name: string): Promise<"done" | "lost">;
  release(names?: string[]): Promise<void>;
  list(space: string, options?: ListOptions): Promise<{ entries: Listed[]; more: boolean }>;
  spend(space: string, what: Spend): Promise<{ granted: number } | { over: string; day: number }>;
  close(): Promise<void>;
}

/**
 * A walk through a list: `for await` gives its items, one page after the other, and `pages()` whole pages. Nothing is sent before that. A
 * walk throws the `HoplineError` of the page that failed; iterating again continues with that page.
 */
export class Walk<Item, Page> implements AsyncIterable<Item> {
  private constructor();
  /** The items. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined>;
  /** The pages, as the service returned them; one may be empty. */
  pages(): AsyncGenerator<Page, void, undefined>;
  /**
   * The position after everything that was handed out, as text: keep it anywhere, and pass it as `position` to continue, in this process or
   * another. In the middle of a page it is that page, whose items then come again. `undefined` after the last page. Until the core is
   * loaded, it is the given `position`.
   */
  readonly position: string | undefined;
  /**
   * The reason why the walk is over, once it is: there was no further page, one was shorter than a full page, the service named one that
   * was read before, or the limit of pages was reached, and `position` with a higher `maxPages` continues.
   */
  readonly end: WalkEnd | undefined;
}

/** A request of your own, below the base URL and with the client's key or token. */
export interface RequestParams {
  /** The parameters of the query; they are percent-encoded for you. */
  query?: Record<string, string> | undefined;
  /** The JSON body. */
  body?: Json;
  /** The repeats that are allowed after a failure whose effect is unknown. Default: `safe` for a GET, else `at_most_once`. */
  safety?: Safety | undefined;
}

/** A proxy of your own. */
export interface ProxyLogin {
  host: string;
  port: number;
  protocol: string;
  username?: string | Secret | null | undefined;
  password?: string | Secret | null | undefined;
  full_url?: string | Secret | null | undefined;
}

/**
 * A session's proxy in the formats of HTTP clients. The credentials are read by their names, and absent from prints and copies. A client
 * that can't use the session's protocol is `invalid`, and the error names one that can.
 */
export class ProxySettings {
  /**
   * Takes `open.session.proxy`, that of a session that was read with `include_credentials`, or an object of your own with those members;
   * without credentials it is `invalid`. The core must be loaded: see `load`.
   */
  constructor(proxy: Proxy | ProxyLogin | null | undefined);
  /** Host name or address. */
  readonly host: string;
  /** Port. */
  readonly port: number;
  /** The protocol. */
  readonly protocol: Protocol;
  /** The proxy as a URL, such as `socks5h://user:pass@host:port`, percent-encoded. The proxy looks names up. A secret. */
  get url(): string;
  /** A configuration for the standard input of `curl --config -`, where no other user sees it. A secret. */
  get curl(): string;
  /** The options for `new ProxyAgent(…)` of undici, and so for Node's `fetch`; HTTP proxies only. Its `token` is a secret in plain text. */
  undici(): { uri: string; token: string };
  /** The option `proxy` for Playwright's `launch` and `newContext`; HTTP proxies only. Its login is a secret in plain text. */
  playwright(): { server: string; username: string; password: string };
  /**
   * Opens a port on 127.0.0.1 that leads through the session and needs no login, for whatever can't log in: Puppeteer, Selenium, wget, SOCKS5
   * sessions. Takes HTTP CONNECT, plain HTTP and SOCKS5. The port of a lease closes once the lease is given back, and observes what it sees of
   * the proxy and of plain HTTP; that of a session follows it to its next exit. Node only.
   */
  onLoopback(options?: {
    /** The number of the port. Default: a free one. */
    port?: number | undefined;
  }): Promise<Loopback>;
}

/** A port on this machine that leads through one session: close it, or use `await using`. A port keeps no program alive. */
export interface Loopback extends AsyncDisposable {
  /** The address of the port, such as `http://127.0.0.1:41234`. For SOCKS5 write `socks5h:` in place of `http:`. */
  readonly url: string;
  /** Closes the port and its connections. A second call does nothing. */
  close(): Promise<void>;
}

/**
 * An observation through a session, for `reportSessionEvent`. The service does not document the names of an event's members, so these are
 * Hopline's; that method takes any object.
 */
export interface SessionEvent {
  /** The HTTP status of the target, 100 to 599. */
  status?: number | undefined;
  /** The outcome if there was no usable answer. */
  seen?: "captcha" | "timeout" | "block" | undefined;
  /** The target's latency, in milliseconds. */
  latency_ms?: number | undefined;
  /** The received bytes. */
  bytes?: number | undefined;
  /** The target's host name. Of a URL only the host is kept, since the rest may be secret. */
  target?: string | { readonly href: string; toJSON(): string } | undefined;
  /** Further members of your own. */
  [name: string]: Json;
}

/**
 * Builds the event from the facts, as a plain object: omitted ones are absent, wrong ones are `invalid`, as is an event without a fact. The
 * core must be loaded: see `load`.
 */
export function sessionEvent(facts: SessionEvent): { [name: string]: Json };

/**
 * Records in a database of the browser, which the tabs and workers of an origin share; browsers only, and there in a secure context only
 * (https or localhost). Elsewhere, such as on a server that renders the page, one can be made, and the first call that needs it fails. Each client holds a Web Lock, which the browser takes back however a tab ends. A page that the browser freezes
 * keeps its lock, so a client without a sign of life for 60 seconds, which does not answer, counts as gone, too; once it wakes it claims
 * its names again, unless others own them.
 */
export class IndexedDBStore implements Store {
  /** Makes a store in the database of that name, which is made if it is missing. Each client needs a store of its own. */
  constructor(name: string, options?: StoreOptions);
  claim(names: string[], most: number): Promise<{ claimed: Map<string, Uint8Array | undefined> } | { busy: Uint8Array | undefined; here?: boolean | undefined }>;
  put(name: string, data: Uint8Array, how?: PutOptions): Promise<"done" | "lost">;
  delete(name: string): Promise<"done" | "lost">;
  release(names?: string[]): Promise<void>;
  list(space: string, options?: ListOptions): Promise<{ entries: Listed[]; more: boolean }>;
  spend(space: string, what: Spend): Promise<{ granted: number } | { over: string; day: number }>;
  close(): Promise<void>;
  onLost(lost: (names?: string[]) => void): void;
  vouches(): boolean | Promise<boolean>;
}

/**
 * Loads the core, which a client otherwise does by itself: Node reads it when something first needs it, a page fetches the file `core.wasm` beside the
 * script while it renders, and a Worker has it. Every call waits for it, and a failed load is tried again by the next call. Await this first if the
 * constructor of a page's client is to refuse wrong options, or to use `isShared`, `ProxySettings` or `sessionEvent` before the first client.
 *
 * `core` is one that you have: a `WebAssembly.Module`, the bytes of `hopline/core.wasm`, or a `Response` with them. It is not looked at if the core
 * is loaded already.
 *
 * @throws {HoplineError} `unavailable` if there is none, or if it belongs to another version of the package; `invalid` if `core` is something else.
 */
export function load(core?: object | Promise<object>): Promise<void>;

/** Returns true if a product is shared static. The core must be loaded: see `load`. */
export function isShared(product: StaticProduct | ProductRanges): boolean;

/** Returns true if an order of a product must name a project. The core must be loaded: see `load`. */
export function needsProjectId(product: StaticProduct): boolean;

/** Reads a range of addresses: a CIDR block, a first and a last address, or one. The core must be loaded: see `load`. */
export function parseIpRange(text: string): IpRange;

/** The requests of all methods, so that a backend can list the ones that it lets through. `{name}` in a path is a parameter. */
export const operations: {
  readonly [Method in Exclude<keyof Operations, `walk${string}`>]: {
    /** The API of the method's client. */
    readonly api: "agent" | "reseller";
    readonly operation: string;
    readonly method: HttpMethod;
    readonly path: string;
  };
};

/**
 * The answer of a resumed operation that is neither an `OpenSession` nor an `OrderReply`: its members are those of its operation.
 * Distinguish them by `instanceof OpenSession`, or by `"order" in` of an order.
 */
export type Resumed = object;

/** The options of a settlement. */
export interface SettleOptions {
  /** The result, for `happened` only. */
  became?: string | number | undefined;
  /** True to settle as `not_happened` within the hour all the same. */
  early?: boolean | undefined;
}

/** The common methods of the clients of both APIs. `Handle` is the result of a wait: a session, an order. */
export interface ClientMethods<Handle> extends AsyncDisposable {
  /**
   * Returns all entries of the store for this account, of every owner. Nothing is sent, and nothing is claimed. A store that can't be read
   * is an error of the kind `store`.
   */
  saved(): Promise<Saved[]>;
  /** Resumes a record: a write in doubt is sent again with the same key, a session or an order is waited for. Nothing new is bought. */
  resume(record: string, options?: SessionOptions): Promise<Handle | Resumed>;
  /** Resumes an intent, as `resume` does for a record. Returns `undefined` if the intent is not known. */
  resumeIntent(intent: string, options?: SessionOptions): Promise<Handle | Resumed | undefined>;
  /**
   * Resumes everything that no living client owns, 16 at a time: every doubt that can be sent again is resumed; sessions and orders that
   * were begun without an intent are taken back and waited for. Sessions and orders with an intent are left for the next start of the
   * intent. Returns the result of each.
   */
  resumeAll(options?: SessionOptions): Promise<PromiseSettledResult<Handle | Resumed>[]>;
  /**
   * Looks up an operation in doubt: reads the service's lists, and returns candidates as the service wrote them, with the parameters that
   * they have with the same values. Nothing is decided; `settle` ends the doubt once a person knows the outcome.
   */
  reconcile(record: string, options?: CallOptions): Promise<Reconciliation>;
  /**
   * Settles a doubt by hand, after a look at the account. `became` is the result, if it is known: the id of a session or recharge, the
   * number of an order or sub-user. An operation that waits for its result continues with it, by its intent or record; for other operations
   * the intent then returns it as the answer. Returns true if there was a doubt. A record that has changed since you read it is `refused`,
   * and so is `not_happened` within an hour after the last send, unless `early` is true: a request may be under way for that long.
   */
  settle(record: string, settlement: "happened" | "not_happened", options?: SettleOptions): Promise<boolean>;
  /**
   * Forgets a session, an order that no call waits for, an accepted intent, which can then be bought again, or a record that can't be used.
   * A record in doubt stays, and so does a record of another account or base URL, unless the client was made with `sameAccount`. Returns
   * true if something was forgotten. A record that has changed since you read it is `refused`, and so is that of a session of this client
   * that is not over: `terminateSession` ends it, `releaseSession` releases it.
   */
  forget(record: string): Promise<boolean>;
  /**
   * Sends a request that has no method here, such as `request("GET", "/billing/invoices")`. The path is percent-encoded and below the base
   * URL. A write is sent once, unless `safety` allows more. Returns the answer's `data`.
   */
  request<Answer = unknown>(method: HttpMethod, path: string, params?: RequestParams, options?: RequestOptions): Promise<Answer>;
  /**
   * Calls a function with each event at once, also with those of sends and of the store, until the returned function is called. No event
   * holds a secret. Exceptions of the listener are ignored.
   */
  onEvent(listener: (event: LoggedEvent) => void): () => void;
  /** Returns the events from now on, until the client is closed. If a listener is too slow the oldest beyond 1024 are dropped. */
  events(options?: { signal?: Signal | undefined }): AsyncIterableIterator<ClientEvent>;
  /**
   * Cancels everything that is under way, whose records stay, and releases everything that this client owned. No session and no order is
   * ended. The wait for a store that does not answer is at most 14 seconds in all. A client that is dropped without it releases its names
   * once it is garbage-collected.
   */
  close(): Promise<void>;
  /** Calls `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface AgentClient extends AgentOperations, ClientMethods<OpenSession> {}

/**
 * The client of one account at the agent API, with any number of calls and sessions under way at once; every method that fails throws a
 * `HoplineError`.
 */
export class AgentClient {
  /**
   * Makes a client. Nothing is sent, and no store is opened, before the first call. If the core is not loaded yet, wrong options are
   * refused by the calls, and so is a `baseUrl` without a host where there is no page, such as while a server renders one.
   */
  constructor(options?: AgentClientOptions);
  /**
   * Buys a session and waits until it is usable or over. At the deadline one that is not is the error `not_ready`, unless `allowPending` is
   * true. Under an intent or a key the next start goes on with that session; without one, and without `keep`, it is ended before the error
   * is thrown.
   */
  openSession(params: CreateSession, options?: OpenOptions): Promise<OpenSession>;
  /** Waits for a session that is known by its id, as `openSession` does after its purchase. */
  waitSession(session_id: string, options?: SessionOptions): Promise<OpenSession>;
  /**
   * Opens a pool; Node only. Nothing is bought before a caller waits for a lease, except for `keepReady`. The pool or the client needs a
   * `dailyCapUsd`, since a pool buys by itself. Clients that open a pool of this name on the same store share its sessions by demand.
   *
   * @throws {HoplineError} `invalid` if it was opened with another request before, unless `onChange` is `replace`; `misuse` in a page.
   */
  openPool(name: string, options: PoolOptions): Promise<Pool>;
  /** Releases a session for other clients of the store, without ending it. Returns true if this client held it. */
  releaseSession(session_id: string): Promise<boolean>;
  /**
   * Prices a quantity of a product: GB of a dynamic one, addresses of a static one. The quote binds the service if the product came from
   * `listProducts`. Nothing is sent, and the sum is exact: no float takes part.
   */
  quote(product: Product, quantity: number | string): Promise<Quote>;
  /**
   * Returns advice after an observation through a session; `undefined` if this client does not follow it. Nothing is sent, unless the
   * session was opened with `autoRotate`: then the session is rotated if the advice is to rotate, and this call waits for the rotation and
   * rejects with its failure. Other observers of the same session wait for the same rotation.
   */
  observe(session_id: string, seen: Seen, options?: ObserveOptions): Promise<Verdict | undefined>;
}

export interface ResellerClient extends ResellerOperations, ClientMethods<OrderReply> {}

/**
 * The client of one reseller, with any number of calls and orders under way at once and one login for all of them; every method that fails
 * throws a `HoplineError`.
 */
export class ResellerClient {
  /** Makes a client. Nothing is sent, and no store is opened, before the first call; see `AgentClient`. */
  constructor(options?: ResellerClientOptions);
  /**
   * The token that is used at present, to start with next time: a secret, for a safe place. `undefined` before the core is loaded, without
   * a login, or once the client is closed.
   */
  get token(): string | undefined;
  /**
   * Places a static order and waits until its proxies can be used, it has ended, or the deadline has come. The order is placed once: with
   * an unknown effect it stays in doubt, and `reconcile` shows candidates for its result. Cancelling the wait leaves the order.
   */
  placeOrder(params: CreateStaticOrder, options?: PlaceOptions): Promise<OrderReply>;
  /** Waits for a static order that is known by its number, as `placeOrder` does once it was placed. */
  waitOrder(order_no: string, options?: WatchOptions): Promise<OrderReply>;
}
