import type { ListOptions, Listed, PutOptions, Secret, Spend, Store } from "hopline";

/** The options of a `PostgresStore`. */
export interface PostgresOptions {
  /** The schema of the tables. Default: `hopline`. */
  schema?: string | undefined;
  /** The milliseconds that a call may take, at most 25 000. Default: 10 000. */
  timeout?: number | undefined;
  /** The store's clock, in Unix milliseconds, for tests. Default: the server's clock. */
  now?: (() => number) | undefined;
}

/**
 * A store in a PostgreSQL database (13 or later) that any number of machines may share, with Python's clients, too. Give each client an
 * object of its own. Needs the package `pg`. `hopline store init` of Python makes the tables, or `postgres.sql` of this package, run by their owner.
 *
 * Claims outlive a client that gives no sign of life by 60 seconds; the store gives one every 15 seconds, from the program's own event loop.
 * The store has connections of its own: one for calls, which is closed when idle, and one for the signs of life. Neither keeps a program from
 * ending. PgBouncer in transaction mode may stand before the server.
 */
export class PostgresStore implements Store {
  /** Makes a store in a database, by an address such as `postgresql://user@host/database`. Nothing is sent before a client's first call that needs it. */
  constructor(address: string | Secret, options?: PostgresOptions);
  claim(names: string[], most: number): Promise<{ claimed: Map<string, Uint8Array | undefined> } | { busy: Uint8Array | undefined }>;
  put(name: string, data: Uint8Array, how?: PutOptions): Promise<"done" | "lost">;
  delete(name: string): Promise<"done" | "lost">;
  release(names?: string[]): Promise<void>;
  list(space: string, options?: ListOptions): Promise<{ entries: Listed[]; more: boolean }>;
  spend(space: string, what: Spend): Promise<{ granted: number } | { over: string; day: number }>;
  close(): Promise<void>;
  onLost(lost: (names?: string[]) => void): void;
  vouches(): boolean;
}
