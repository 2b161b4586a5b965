// A connection to PostgreSQL for one statement at a time, each with a limit of time, over the package pg.
import { uptime } from "node:os";

import pg from "pg";

/** A wait for a standby that is broken off: the commit is done here, and nobody knows whether it would outlast a failover. */
const NOT_REPLICATED = ["57014", "57P01"];
const WITHHELD = "its text is withheld, since it may hold a part of the address";
const [begun, up] = [performance.now(), uptime()];

/** Seconds since some moment, by a clock that nobody sets. A machine that was suspended counts the time. */
export const now = () => Math.max((performance.now() - begun) / 1000, uptime() - up);

/** A statement was certainly not done. `state` is the SQLSTATE, if the server has said it. */
export class NotDone extends Error {
  constructor(text, state = "") {
    super(text);
    this.state = state;
  }
}

/** A statement may or may not be done. */
export class MaybeDone extends Error {}

/** The place of a database, with the password. */
export class Address {
  #dsn;
  #pieces;

  constructor(dsn) {
    if (!/^postgres(ql)?:\/\//.test(dsn)) throw new TypeError("a PostgresStore takes an address such as `postgresql://user@host/database`");
    this.#dsn = dsn;
    const [rest, query = ""] = dsn.slice(dsn.indexOf("://") + 3).split("?");
    const login = rest.includes("@") ? rest.slice(0, rest.lastIndexOf("@")) : "";
    const password = login.includes(":") ? login.slice(login.indexOf(":") + 1) : "";
    const secrets = query.split("&").filter((setting) => /pass/i.test(plain(setting)));
    const given = [password, ...password.split(/[/?#@:&=\s]/), ...secrets.map((setting) => setting.slice(setting.indexOf("=") + 1)), process.env.PGPASSWORD ?? ""];
    this.#pieces = [...new Set(given.flatMap((piece) => [piece, plain(piece)]))].filter(Boolean);
    const settings = query.split("&").filter((setting) => setting && !secrets.includes(setting));
    // A sign of a password that was not written as `%3F` or the like looks like the end of the login.
    const [user] = login.split(/[:/?#]/);
    this.shown = `${dsn.split("://")[0]}://${user}${login && "@"}${rest.slice(login && login.length + 1)}${settings.length > 0 ? `?${settings.join("&")}` : ""}`;
  }

  /** Returns a message, unless it holds a piece of the password. */
  clean(text) {
    const line = String(text).split(/\s+/).join(" ");
    return this.#pieces.some((piece) => line.includes(piece)) ? WITHHELD : line;
  }

  /** Returns a client of pg, which connects to nothing yet. */
  client() {
    try {
      return new pg.Client({ connectionString: this.#dsn, fallback_application_name: "hopline", client_encoding: "UTF8" });
    } catch {
      // Its own text has pieces of the address.
      throw new NotDone("the address of the database can't be read: write `%40` for an `@` in a password", "HL005");
    }
  }
}

function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** One connection. The program does not wait for it but during a call. */
export class Link {
  #address;
  #client;
  #isReplicated = true;
  isOpen = true;
  used = now();

  static async open(address, until) {
    const link = new Link();
    link.#address = address;
    const client = (link.#client = address.client());
    // An error outside of a call: the next one finds a connection that is closed.
    client.on("error", () => link.end());
    client.on("end", () => (link.isOpen = false));
    client.on("notice", ({ code }) => {
      if (NOT_REPLICATED.includes(code)) link.#isReplicated = false;
    });
    try {
      await within(until, client.connect(), () => new Error("it did not answer in time"));
    } catch (error) {
      link.end();
      throw new NotDone(`the database can't be reached: ${address.clean(said(error))}`, isState(error.code) ? error.code : "");
    }
    return link;
  }

  end() {
    this.isOpen = false;
    this.#client.connection.stream.destroy();
  }

  /** Makes a statement, or several in one transaction, and returns the rows of each that has some, as text. */
  async ask(statement, until) {
    this.#isReplicated = true;
    const client = this.#client;
    client.ref();
    try {
      const results = await within(until, this.#query(statement), () => new MaybeDone(lost("it did not answer in time")));
      if (!this.#isReplicated) throw new MaybeDone("the database did not wait for its standby");
      return results.filter(({ fields }) => fields.length > 0).map(({ rows }) => rows);
    } catch (error) {
      if (!(error instanceof NotDone)) this.end();
      throw error;
    } finally {
      client.unref();
      this.used = now();
    }
  }

  async #query(text) {
    const client = this.#client;
    const isStillOpen = settled(client);
    try {
      const results = await client.query({ text, rowMode: "array", types: { getTypeParser: () => String } });
      return Array.isArray(results) ? results : [results];
    } catch (error) {
      const why = this.#address.clean(said(error));
      // The server has rolled back what it answers with an error. One that ends the connection may have come after the commit.
      const isRefused = isState(error.code) && !error.code.startsWith("08") && (await isStillOpen);
      throw isRefused ? new NotDone(`the database refused the call: ${why} (SQLSTATE ${error.code})`, error.code) : new MaybeDone(lost(why));
    }
  }
}

const lost = (why) => `the connection to the database was lost: ${why}`;
const said = (error) => error?.message || error?.code || "it gave no reason";
const isState = (code) => typeof code === "string" && /^[0-9A-Z]{5}$/.test(code);

/** True if a client is ready for another statement once the one that is made now is over. */
const settled = (client) => new Promise((resolve) => {
  const [ready, ended] = [true, false].map((isOpen) => () => {
    client.off("drain", ready);
    client.off("end", ended);
    resolve(isOpen);
  });
  client.on("drain", ready);
  client.on("end", ended);
});

/** Waits for a promise until a moment, or throws. */
async function within(until, promise, late) {
  let timer;
  try {
    const limit = new Promise((_, reject) => (timer = setTimeout(() => reject(late()), Math.max(0, until - now()) * 1000)));
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => {});
  }
}
