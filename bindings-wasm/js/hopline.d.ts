/// <reference lib="esnext.disposable" />

/** Any JSON: the contract does not document what is inside, so look before you use it. */
export type Json = unknown;

/**
 * An answer with the members that its type does not have, since no contract documents them: `(session as Undocumented<Session>).zone`.
 * Every answer keeps such members as the service wrote them.
 */
export type Undocumented<Answer> = Answer & { readonly [member: string]: unknown };

/** `AbortSignal`, where the environment's types have one. */
type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Found } } ? Found : any;

/** A word of a list that the service may lengthen. */
export type Open<Word extends string> = Word | (string & {});

/**
 * A username, password, token or email address in an answer: `reveal()` gives its text. It prints, logs and stringifies as
 * `[redacted]`. Copies by spread, Immer, Redux, Vue and TanStack Query keep it; `structuredClone` and `postMessage` drop its text.
 * The same text is the same object. Pass it on as it is, wherever a client takes its text.
 */
export class Secret {
  private constructor();
  /** Tells it apart from the others of this program. */
  readonly serial: number;
  /** Its text. */
  readonly reveal: () => string;
  /** `[redacted]`. */
  toString(): string;
  /** `[redacted]`. */
  toJSON(): string;
}

/** What is known of an answer, beside itself. */
export interface Meta {
  /** To quote when reporting a problem. */
  readonly requestId?: string;
  /** The HTTP status; absent where the service was not asked now. */
  readonly httpStatus?: number;
  /** How often it was sent. */
  readonly attempts: number;
  /** Of a read with `until`: `ready` when it holds, `pending` at the deadline. Of a session or an order: where it is. */
  readonly phase?: Phase;
  /** The text of the service's `data`, digit for digit. It may hold secrets, so it is not enumerable. */
  readonly raw: string;
}

/**
 * What is known of an answer: of the object that a call returned, not of a copy. Nothing of anything else, and of an answer that is
 * no object.
 */
export function meta(answer: unknown): Meta | undefined;

/** As much of `fetch` as a client uses. */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: [string, string][];
    /** A `Uint8Array`, or nothing. */
    body: any;
    redirect: "manual";
    cache: "no-store";
    signal: Signal;
  },
) => Promise<FetchResponse>;

/** As much of a `Response` as a client uses. */
export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: { getReader(): { read(): Promise<{ done: boolean; value?: any }>; cancel(): Promise<void> } } | null;
}

/** What a read is repeated for: it ends when the value at `at` is one of `is`, or a number of at least `atLeast`. */
export interface Until {
  /** Where in the answer to look, a JSON pointer (RFC 6901) such as `/status`. */
  at: string;
  /** The values that end it; one that is no text is compared by its JSON, such as `true`. One of `is` and `atLeast` must be there. */
  is?: string[] | undefined;
  /** The number that ends it, once it is reached; a text is compared digit for digit. */
  atLeast?: number | string | undefined;
}

/**
 * A session that was opened, as a handle. Its members show the newest state that its client has seen, whichever call has read it:
 * what a read did not ask for, such as the login, stays as it was.
 */
export class OpenSession implements AsyncDisposable {
  private constructor();
  /** Its id: the handle for everything that comes after. */
  readonly session_id: string;
  /** What its purchase was charged, in USD, where the service said so. */
  readonly charged_usd?: string;
  /** Where it was when it was last waited for; `ended` once it was terminated through a handle. */
  readonly phase: Phase;
  /** What was read of it last. */
  readonly session: Session;
  /** How often its exit or its login has changed, as far as this client has seen: make new connections when it has grown. */
  readonly generation: number;
  /** Its proxy, as HTTP clients want it. Throws `invalid` where the login is not known: open the session with `credentials`. */
  get proxy(): ProxySettings;
  /** Waits on until it is usable or over. */
  wait(options?: SessionOptions): Promise<OpenSession>;
  /** Gives it another exit address. Where `session` shows its login, so does the answer, unless `include_credentials` is false. */
  rotate(params?: Omit<RotateSession, "session_id">, options?: KeyedOptions): Promise<Session>;
  /** Reads it, with its login where that is known. */
  refresh(options?: ReadOptions): Promise<Session>;
  /** Lengthens it. */
  renew<Answer = unknown>(params: Omit<RenewSession, "session_id">, options?: RenewOptions): Promise<Answer>;
  /** Ends it. Then its `phase` is `ended`, and `session` has the status that the service gives it, if it gives one. */
  terminate<Answer = unknown>(options?: WriteOptions): Promise<Answer>;
  /** Advice on what was seen through it; with `autoRotate`, what `observe` of the client does. */
  observe(seen: Seen, options?: ObserveOptions): Promise<Verdict | undefined>;
  /** Lets other clients of the store have it, without ending it. Returns whether this client held it. */
  release(): Promise<boolean>;
  /**
   * Terminates it if it was bought here, is dynamic, and was not to be kept; otherwise releases it. `await using` does this.
   */
  dispose(): Promise<void>;
  /** The same. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a lease is asked for with. */
export interface AcquireOptions {
  /** What is to be reached, such as a host: what is seen there counts for it alone. */
  target?: string | undefined;
  /** The same key gets the same session, as long as this client has it and its exit has not changed. */
  key?: string | undefined;
  /** How long to wait for a session, in milliseconds. Default: 30 000. */
  timeoutMs?: number | undefined;
  /** Gives up waiting. A purchase that is under way goes on, for whoever comes next. */
  signal?: Signal | undefined;
}

/**
 * Sessions that are lent, at most `size` at a time over all processes that share the store; Node only. They are bought when somebody waits,
 * or ahead of demand with `ready`. What is open works by itself until the pool or its client is closed.
 */
export interface Pool extends AsyncDisposable {
  /** Its name. */
  readonly name: string;
  /**
   * Acquires a lease, passes it on, and gives it back when what was done with it has ended. Gives what that gives.
   *
   * @throws {HoplineError} `unavailable` where no session is free in time; its message says why, `retry_at` when one may be bought.
   */
  withLease<T>(use: (lease: Lease) => Promise<T> | T): Promise<T>;
  withLease<T>(options: AcquireOptions, use: (lease: Lease) => Promise<T> | T): Promise<T>;
  /**
   * Waits for a session that is free. First come, first served. Give the lease back by `release` or `using`.
   *
   * @throws {HoplineError} `unavailable` where no session is free in time, `cancelled` by its signal or when the pool is closed.
   */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /** How it is. With `everywhere` the store is asked what other clients have. */
  status(options?: { everywhere?: boolean | undefined }): Promise<PoolStatus>;
  /** Waits until so many sessions are ready, at most `ready` of the pool. Default: 1, for at most 300 000 ms. */
  waitReady(count?: number, options?: { timeoutMs?: number | undefined; signal?: Signal | undefined }): Promise<void>;
  /** Buys no more, in any client of the store. What there is is lent on. */
  pause(): Promise<void>;
  /** Buys again. */
  resume(): Promise<void>;
  /** Lends no more, waits for leases (10 000 ms where `graceMs` is left out), and lets other clients have the sessions, which live on. */
  close(options?: { graceMs?: number | undefined }): Promise<void>;
  /**
   * Closes it and terminates its dynamic sessions; with `everywhere` those of all clients. Static sessions are terminated with
   * `includeStatic` only; nothing is refunded.
   */
  drain(options?: { graceMs?: number | undefined; everywhere?: boolean | undefined; includeStatic?: boolean | undefined }): Promise<void>;
  /** The same as `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A session that was lent. Its exit does not change as long as it is. One that is garbage-collected goes back by itself. */
export interface Lease extends Disposable {
  readonly sessionId: string;
  /** How to reach it. */
  readonly proxy: ProxySettings;
  /** Grows whenever the session gets another exit or other credentials. */
  readonly generation: number;
  /** Which of the pool's sessions it is, 0 to `size` - 1. */
  readonly slot: number;
  /** What it was acquired for. */
  readonly target: string | undefined;
  /** Whether it is still this client's: false once it was given back, or where another client may have it. */
  readonly valid: boolean;
  /** A place for what belongs to this exit, such as cookies: whoever gets the same exit finds it, and it is empty for a new one. */
  readonly data: { [name: string]: any };
  /**
   * Says what a request through it met, and gives what to do: go on, give it back and acquire again, or give it back and wait.
   * Nothing is sent by it, and nothing is bought unless the pool was opened with `replace: "failing"`.
   */
  observe(seen: Seen): LeaseAdvice;
  /**
   * A `ProxyAgent` of the package `undici`, version 6, 7 or 8, which must be installed: `fetch(url, { dispatcher: lease.dispatcher() })`, with
   * Node's own `fetch` or that of the package. Leases of the same exit share it. An HTTP proxy only.
   */
  dispatcher(): any;
  /** Gives it back. */
  release(): void;
  /** The same. */
  [Symbol.dispose](): void;
}

/** How a static order is, when waiting for it ended: usable, over, or not yet, at the deadline; `waitOrder` waits on. */
export interface OrderReply {
  /** Its number: the handle for everything that comes after. */
  readonly order_no: string;
  /** Where it is. */
  readonly phase: Phase;
  /** What the list of static orders shows of it. The usernames and passwords of its proxies are a `Secret` each. */
  readonly order: StaticOrder;
}

/**
 * What a request through a session met, in a word.
 *
 * - `captcha`: a page that asks for a captcha
 * - `timeout`: no answer in time
 * - `block`: a block that shows in another way
 * - `proxy`: the proxy refused the request, or could not be reached
 * - `target`: the target could not be reached, or failed in another way; it says nothing about the session
 * - `unknown`: a failure that may be the proxy's or the target's, such as a connection that broke off; after three in a row the session is to
 *   be read again, and a pool does that by itself
 */
export type SeenWord = "captcha" | "timeout" | "block" | "proxy" | "target" | "unknown";

/**
 * What a request through a session met: an HTTP status, a word, a response, or the error of an HTTP client. An error that is not known is a
 * `timeout` or the `proxy`'s if its name or its words say so, and else `unknown`.
 */
export type Seen = number | SeenWord | Error | { readonly status: number } | { readonly statusCode: number };

/** How much of interest to people an event is. */
export type Level = "debug" | "info" | "warn";

/** What tells people what happens, such as `console`. The message names the operation and the event. */
export type Log = { [Name in Level]?: (message: string, event: LoggedEvent) => void };

/** An operation began. `command` is the same for all that comes of it. */
export interface BeganEvent {
  event: "began";
  operation: string;
  command: number;
}

/** An operation ended; where it failed, with the members of its error. */
export interface EndedEvent {
  event: "ended";
  operation: string;
  command: number;
  kind?: HoplineError["kind"] | undefined;
  effect?: HoplineError["effect"] | undefined;
  advice?: HoplineError["advice"] | undefined;
  /** How long it took, in milliseconds. */
  duration_ms: number;
}

/** A request was sent. `send` is the same for what comes of it. */
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
  /** How it failed, where there is no status. */
  failure?: "dns" | "connect" | "tls" | "timeout" | "closed" | "aborted" | "late" | "other" | undefined;
  /** How long it took, in milliseconds. */
  duration_ms: number;
}

/** The store answered a call, or failed. */
export interface StoredEvent {
  event: "stored";
  operation: "store";
  call: "claim" | "put" | "delete" | "release" | "list" | "spend";
  failed: boolean;
  /** How long it took, in milliseconds. */
  duration_ms: number;
}

/** Claims have ended while the client lives: another client may have what it had. */
export interface ClaimsLostEvent {
  event: "claims_lost";
  operation: "store";
  /** How many; 1 where all ended. */
  claims: number;
}

/** What was done with a pool's leases. */
export type LeaseEvent = {
  operation: "acquire";
  /** The pool's name. */
  pool: string;
  /** How long it was waited for; of what was observed and given back, how long it was lent. In milliseconds. */
  duration_ms: number;
} & (
  | { event: "lease_acquired" | "lease_released" }
  | { event: "acquire_failed"; kind: ErrorKind }
  | { event: "lease_observed"; seen: number | SeenWord; advice?: LeaseAdvice | undefined }
);

/** Everything that `onEvent` and `log` are told. */
export type LoggedEvent = { level: Level } & (ClientEvent | BeganEvent | EndedEvent | SentEvent | AnsweredEvent | StoredEvent | ClaimsLostEvent | LeaseEvent);

/** What may be decided for waiting for a rotation. */
export interface ObserveOptions {
  /** Gives the rotation up, unless others wait for it. */
  signal?: Signal | undefined;
}

export interface HoplineError extends ErrorFields {}

/** Every failure of this package. Narrow it by `kind`. */
export class HoplineError extends Error {
  private constructor();
  message: string;
  /**
   * Of the kind `refused`: whether this client refused it, and not the service. That is so for the daily cap, the price limit, an account
   * that is not ready, a `settle` that came too early, a `forget` of a session that the client has, a record that has changed, a
   * `resume` of what your own backend refused, and a `reconcile` that has nothing to look up.
   */
  get isRefusedByUs(): boolean;
  /**
   * The first failure where this one came of a later send, what failed in the store, or the reason of the signal. Of a
   * store's own error it has only the name, unless it is one of the system with `code` and `syscall`: its text may hold a login.
   */
  cause?: unknown;
  /**
   * All of it but what a server wrote, for logs; of a cause, too. `structuredClone` and `postMessage` keep no members of an error of any
   * kind but its message, so hand on what this gives.
   */
  toJSON(): ErrorFields & { name: string; stack?: string; cause?: object };
}

/**
 * Where records are kept: data by names, each of which has one owner at most. A client owns the names of what is under way and of
 * what it holds; another one is told that they are busy, until their owner lets go of them or is gone. Data is JSON as bytes and
 * holds no secret; keep it as it is. A name is `<space>.<kind><hash>`, at most 66 characters of `0-9`, `a-z` and `.`.
 *
 * Write one for a database by these six calls. Each may be repeated and then does nothing new. One that rejects has failed: perhaps
 * it was done, perhaps not; with an `Error` whose `notOpened` is true it was surely not done, since the store could not be opened at all.
 * A call must not be done after it has rejected. What every store must do is data, in `tests/store` of the repository.
 */
export interface Store {
  /**
   * Makes this client the owner of names that no other living client owns, at most `most` of them: first those that it owns, then
   * those with data, then the others. Gives them with their data, `undefined` where there is none. Where others own all of them it is
   * busy, with what the owner of one of them put last; `here` says that another client of this process is in the way.
   */
  claim(names: string[], most: number): Promise<{ claimed: Map<string, Uint8Array | undefined> } | { busy: Uint8Array | undefined; here?: boolean | undefined }>;
  /**
   * Keeps data under a name, so that it survives a crash: then the old data is there or the new. `lost` where this client does not
   * own the name, and with `new` where the name is there or another's; then nothing is changed.
   */
  put(name: string, data: Uint8Array, how: PutOptions): Promise<"done" | "lost">;
  /** Deletes what is under a name, which nobody owns then. `done` also where nothing is there, `lost` where it is not this client's. */
  delete(name: string): Promise<"done" | "lost">;
  /** Lets others claim these names, or all that this client owns. */
  release(names?: string[]): Promise<unknown>;
  /** The names of a space that are there, in the order of their letters, 500 at most, and whether more follow. Claims nothing. */
  list(space: string, options: ListOptions): Promise<{ entries: Listed[]; more: boolean }>;
  /**
   * Sets what an entry counts on a day of a space, and gives the day. Where the entry would grow and the day's sum pass the cap,
   * nothing is changed, and it gives the day, and its sum as it stands.
   */
  spend(space: string, what: Spend): Promise<{ granted: number } | { over: string; day: number }>;
  /** The client is closed: lets go of all names. */
  close?(): Promise<unknown>;
  /**
   * Whether a call may still be done after it has rejected, as after a time limit. Then a purchase whose record could not be put is never
   * said to have had no effect. Default: false.
   */
  lateCalls?: boolean;
  /**
   * Of a store whose claims can end while their owner lives, as in a database: `lost` is to be called when they did, with the names,
   * or without any for all. Call it before a claim that was made meanwhile is granted, or the client would forget that one, too.
   */
  onLost?(lost: (names?: string[]) => void): void;
  /** Of such a store: whether the claims stand for the next 20 seconds; asked before each request, which is not sent unless they do. */
  vouches?(): boolean | Promise<boolean>;
}

/** How data is put. */
export interface PutOptions {
  /** Whether the name must not be there; then this client owns it. */
  new?: boolean | undefined;
  /** Milliseconds after which the store may drop it, unless somebody owns it then; never where it is left out. */
  keepFor?: number | undefined;
  /** Whether this client lets go of the name in the same step. */
  release?: boolean | undefined;
}

/** What is listed. */
export interface ListOptions {
  /** Only names behind this one. */
  after?: string | undefined;
  /** Whether to leave out what was put with `keepFor`. */
  open?: boolean | undefined;
}

/** One name of a list. */
export interface Listed {
  name: string;
  data: Uint8Array;
  whose: Whose;
}

/** What counts under a day's cap. Amounts are decimals as text, such as `4.50`. */
export interface Spend {
  /** The UTC day, counted from 1970; today by the store's clock, which never goes back, where it is left out. */
  day?: number | undefined;
  /** What is counted. */
  entry: string;
  /** What it counts, in USD. */
  amount: string;
  /** What all entries of the day may come to, in USD; any sum where it is left out. */
  cap?: string | undefined;
}

/** For tests of what depends on time. */
export interface StoreOptions {
  /** The store's clock, in Unix milliseconds; `Date.now` by default. */
  now?: (() => number) | undefined;
}

/**
 * Records as files, in a folder that the processes of a machine share; Node only. A client that is gone is seen to be gone at once,
 * by a socket in the folder that nobody listens on, so the folder must not be shared between machines. Its format is Node's own, and
 * it opens no folder of another: not that of Python, Kotlin, Swift or Rust.
 */
export class FolderStore implements Store {
  /** A store in the folder of that name, which is made if it is not there. Each client needs a store of its own. */
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
 * A walk through a list: `for await` gives its items, one page after the other, and `pages()` whole pages. Nothing is sent
 * before that. It throws the `HoplineError` of the page that failed, and whoever iterates again goes on with that page.
 */
export class Walk<Item, Page> implements AsyncIterable<Item> {
  private constructor();
  /** The items. */
  [Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined>;
  /** The pages, as they were answered; one may be empty. */
  pages(): AsyncGenerator<Page, void, undefined>;
  /**
   * What comes after all that was handed out, as text: keep it anywhere, and `position` goes on from there, in this process or
   * another. In the middle of a page it is that page, whose items then come again. Nothing after the last page. Until the core is
   * loaded, it is the `position` that was given.
   */
  readonly position: string | undefined;
  /**
   * Why it is over, once it is: there was no further page, one was shorter than it might be, the service named one that was read before, or as many were read as
   * may be, and `position` with a higher `maxPages` goes on.
   */
  readonly end: WalkEnd | undefined;
}

/** A request of your own, below the base URL and with the client's key or token. */
export interface RequestParams {
  /** The parameters of the query; they are percent-encoded for you. */
  query?: Record<string, string> | undefined;
  /** The JSON body. */
  body?: Json;
  /** What may be done after a failure whose effect is unknown. Default: `safe` for a GET, else `at_most_once`. */
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
 * A session's proxy, as the clients that people use with it want it. The credentials are read by their name, and absent from
 * what is printed or copied. A client that can't use the session's protocol is `invalid`, and the error names one that it can.
 */
export class ProxySettings {
  /**
   * `open.session.proxy`, that of a session that was read with `include_credentials`, or an object of your own with those members;
   * without credentials it is `invalid`. It needs the core: see `load`.
   */
  constructor(proxy: Proxy | ProxyLogin | null | undefined);
  /** Host name or address. */
  readonly host: string;
  /** Port. */
  readonly port: number;
  /** What it speaks. */
  readonly protocol: Protocol;
  /** All of it as a URL, such as `socks5h://user:pass@host:port`, percent-encoded. Names are looked up by the proxy. A secret. */
  get url(): string;
  /** A configuration for `curl --config -`, which reads it from its standard input, where nobody else sees it. A secret. */
  get curl(): string;
  /** For `new ProxyAgent(…)` of undici, and so for Node's `fetch`; an HTTP proxy only. Its `token` is a secret in plain text. */
  undici(): { uri: string; token: string };
  /** For the option `proxy` of Playwright's `launch` and `newContext`; an HTTP proxy only. Its login is a secret in plain text. */
  playwright(): { server: string; username: string; password: string };
}

/**
 * What was seen through a session, for `reportSessionEvent`. The service does not show the names of an event's members, so
 * these are Hopline's; that method takes any object.
 */
export interface SessionEvent {
  /** The HTTP status of the target, 100 to 599. */
  status?: number | undefined;
  /** What else was met. */
  seen?: "captcha" | "timeout" | "block" | undefined;
  /** How long the target took, in milliseconds. */
  latency_ms?: number | undefined;
  /** How much came, in bytes. */
  bytes?: number | undefined;
  /** The target's host name. Of a URL only that is kept, since the rest may be secret. */
  target?: string | { readonly href: string; toJSON(): string } | undefined;
  /** Whatever else you want to say. */
  [name: string]: Json;
}

/**
 * Makes the event out of the facts, as a plain object: those that are left out are absent, wrong ones are `invalid`, as is an
 * event without a fact. It needs the core: see `load`.
 */
export function sessionEvent(facts: SessionEvent): { [name: string]: Json };

/**
 * Records in a database of the browser, which the tabs and workers of an origin share; browsers only, and there in a secure
 * context only (https or localhost). Each client holds a Web Lock, which the browser takes back however a tab ends. A page that the
 * browser freezes keeps its lock, so a client that gave no sign of life for 60 seconds, and does not answer, is gone, too; once it
 * wakes it claims its names again, as far as nobody else has them.
 */
export class IndexedDBStore implements Store {
  /** A store in the database of that name, which is made if it is not there. Each client needs a store of its own. */
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
 * Loads the core, the file `core.wasm` beside the script. In Node it is there from the start. In a browser a client loads it
 * by itself, every call waits for it, and one that fails is tried again by the next call; whoever wants wrong options to be
 * refused by the constructor, or uses `isShared`, `ProxySettings` or `sessionEvent` before a client was, awaits this first.
 */
export function load(): Promise<void>;

/** Whether a product is shared static. It needs the core: see `load`. */
export function isShared(product: StaticProduct | ProductRanges): boolean;

/** Whether an order of a product must name a project. It needs the core: see `load`. */
export function needsProjectId(product: StaticProduct): boolean;

/** Reads a range of addresses: a CIDR block, a first and a last address, or one. It needs the core: see `load`. */
export function parseIpRange(text: string): IpRange;

/** What each method sends, so that a backend can name the ones that it lets through. `{name}` in a path is a parameter. */
export const operations: {
  readonly [Method in Exclude<keyof Operations, `walk${string}`>]: {
    /** Whose client has it. */
    readonly api: "agent" | "reseller";
    readonly operation: string;
    readonly method: HttpMethod;
    readonly path: string;
  };
};

/**
 * The answer of what was resumed where it is neither an `OpenSession` nor an `OrderReply`: its members are those of its operation.
 * Tell them apart by `instanceof OpenSession`, or by `"order" in` of an order.
 */
export type Resumed = object;

/** What goes with a settlement. */
export interface SettleOptions {
  /** What it became: only of what happened. */
  became?: string | number | undefined;
  /** Whether to say `not_happened` within the hour all the same. */
  early?: boolean | undefined;
}

/** What the clients of both APIs can do. `Handle` is what something is that was waited for: a session, an order. */
export interface ClientMethods<Handle> extends AsyncDisposable {
  /**
   * All that the store holds of this account, whosever it is. Nothing is sent, and nothing is claimed. A store that can't be read is
   * an error of the kind `store`.
   */
  saved(): Promise<Saved[]>;
  /**
   * Goes on with what a record stands for: a write in doubt is sent again with the same key, a session or an order is waited for. Nothing
   * new is bought.
   */
  resume(record: string, options?: SessionOptions): Promise<Handle | Resumed>;
  /** Goes on with what an intent stands for, as `resume`. Gives `undefined` for an intent that stands for nothing. */
  resumeIntent(intent: string, options?: SessionOptions): Promise<Handle | Resumed | undefined>;
  /**
   * Goes on with what nobody has, 16 at a time: every doubt that can be sent again is resumed; sessions and orders that were begun
   * without an intent are taken back and waited for. Sessions and orders with an intent are left to whoever starts it. Gives how each
   * has ended.
   */
  resumeAll(options?: SessionOptions): Promise<PromiseSettledResult<Handle | Resumed>[]>;
  /**
   * Looks for what became of an operation in doubt: reads what the service has to show of it, and gives what may be it, as the
   * service wrote it, with the parameters that it shows with the same values. It decides nothing; `settle` closes the doubt once
   * somebody knows.
   */
  reconcile(record: string, options?: CallOptions): Promise<Reconciliation>;
  /**
   * Closes a doubt by hand, after a look at the account. `became` is what it became, if that is known: the id of a session or
   * recharge, the number of an order or sub-user. What was to be waited for goes on with that, by its intent or record; anything
   * else is what the intent answers with. Gives whether there was a doubt. A record that has changed since you looked at it is
   * `refused`, and so is `not_happened` within an hour after it may have been sent last, unless `early` is true: a request may be
   * under way for so long.
   */
  settle(record: string, settlement: "happened" | "not_happened", options?: SettleOptions): Promise<boolean>;
  /**
   * Forgets a session, an order that nobody waits for, an accepted intent, which can then be bought again, or a record that can't be
   * used. What is in doubt stays, and so does a record of another account or base URL, unless the client was made with `sameAccount`. Gives
   * whether something was forgotten. A record that has changed since you looked at it is `refused`,
   * and so is that of a session that this client has and that is not over: `terminateSession` ends it, `releaseSession` lets go of it.
   */
  forget(record: string): Promise<boolean>;
  /**
   * A request that no method is there for, such as `request("GET", "/billing/invoices")`. The path is percent-encoded and below
   * the base URL. A write is sent once, unless `safety` says what else may be done. Gives the answer's `data`.
   */
  request<Answer = unknown>(method: HttpMethod, path: string, params?: RequestParams, options?: RequestOptions): Promise<Answer>;
  /**
   * Calls a function with each event at once, also with those of sends and of the store, until the function that this gives is called.
   * It holds no secret. What the listener throws is ignored.
   */
  onEvent(listener: (event: LoggedEvent) => void): () => void;
  /** What happens from now on, until the client is closed. Whoever comes late for them misses the oldest of 1024. */
  events(options?: { signal?: Signal | undefined }): AsyncIterableIterator<ClientEvent>;
  /**
   * Gives up what is under way, which stays in the store, and lets others have all that this client owned. It ends no session and no
   * order. A store that does not answer is waited for 14 seconds in all. A client that is dropped without it lets go once it is collected.
   */
  close(): Promise<void>;
  /** The same. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface AgentClient extends AgentOperations, ClientMethods<OpenSession> {}

/**
 * The client of one account at the agent API. It may have any number of calls and sessions under way at once; every method that
 * fails throws a `HoplineError`.
 */
export class AgentClient {
  /**
   * A client. Nothing is sent, and no store is opened, before the first call. Where the core is not loaded yet, wrong options
   * are refused by the calls.
   */
  constructor(options?: AgentClientOptions);
  /** Buys a session and waits until it is usable, over, or the deadline has come. */
  openSession(params: CreateSession, options?: OpenOptions): Promise<OpenSession>;
  /** Waits for a session that is known by its id, as `openSession` does after its purchase. */
  waitSession(session_id: string, options?: SessionOptions): Promise<OpenSession>;
  /**
   * Opens a pool; Node only. Nothing is bought before somebody waits for a lease, except what is to be `ready`. The pool or the client
   * needs a `dailyCapUsd`, since a pool buys by itself.
   *
   * @throws {HoplineError} `invalid` where it was opened with another request before, `misuse` in a page.
   */
  openPool(name: string, options: PoolOptions): Promise<Pool>;
  /** Lets other clients of the store have a session, without ending it. Returns whether this client held it. */
  releaseSession(session_id: string): Promise<boolean>;
  /**
   * What a quantity of a product is to cost: GB of a dynamic one, addresses of a static one. It binds the service when the
   * product came from `listProducts`. Nothing is sent, and the sum is exact: no float is in it.
   */
  quote(product: Product, quantity: number | string): Promise<Quote>;
  /**
   * Advice on what was seen through a session; nothing if this client does not follow it. Nothing is sent, unless the session
   * was opened with `autoRotate`: then it is rotated where the advice would be to, and this waits for that and fails as it does.
   * Whoever observes the same session meanwhile waits for the same rotation.
   */
  observe(session_id: string, seen: Seen, options?: ObserveOptions): Promise<Verdict | undefined>;
}

export interface ResellerClient extends ResellerOperations, ClientMethods<OrderReply> {}

/**
 * The client of one reseller. It may have any number of calls and orders under way at once, and logs in once for all of them;
 * every method that fails throws a `HoplineError`.
 */
export class ResellerClient {
  /** A client. Nothing is sent, and no store is opened, before the first call; as of `AgentClient`. */
  constructor(options?: ResellerClientOptions);
  /**
   * The token that is used at present, to start from next time: a secret, for a safe place. Nothing before the core is loaded,
   * without a login, or once the client is closed.
   */
  get token(): string | undefined;
  /**
   * Places a static order and waits until its proxies can be used, it has ended, or the deadline has come. It is placed once:
   * with its effect unknown it stays in doubt, and `reconcile` shows what it may have become. Giving up the wait leaves the order.
   */
  placeOrder(params: CreateStaticOrder, options?: PlaceOptions): Promise<OrderReply>;
  /** Waits for a static order that is known by its number, as `placeOrder` does once it was placed. */
  waitOrder(order_no: string, options?: WatchOptions): Promise<OrderReply>;
}
