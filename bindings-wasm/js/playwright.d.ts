// Playwright over a pool of sessions: a browser context for each exit.
import type { AcquireOptions, Lease, Pool } from "hopline";

/** The members of Playwright's browser that are used, of `playwright`, `playwright-core` and their forks. */
export interface ContextMaker<Context> {
  newContext(options?: any): Promise<Context>;
}

/** How long a lease waits for a session, and the options of each `newContext`, but for `proxy`. */
export interface PoolContextsOptions {
  /** Default: 60 000. */
  timeoutMs?: number | undefined;
  /** Options of `browser.newContext`, such as `locale`. */
  [ofContext: string]: unknown;
}

/**
 * The browser contexts of a pool's exits. A context with its cookies and connections lives as long as its exit: when a session's `generation` has
 * grown, its context is closed, and the next lease has a new one. The pool needs `protocol: "http"`.
 */
export class PoolContexts<Context> implements AsyncDisposable {
  constructor(browser: ContextMaker<Context>, pool: Pool, options?: PoolContextsOptions);
  /**
   * Leases a session, with the browser context of its exit. At the end the context's pages are closed, and then the lease goes back. Report to
   * `lease.observe` each response or exception of `page.goto`.
   */
  withLease<T>(use: (lease: Lease, context: Context) => T | Promise<T>): Promise<T>;
  withLease<T>(options: AcquireOptions, use: (lease: Lease, context: Context) => T | Promise<T>): Promise<T>;
  /** Closes all contexts. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
