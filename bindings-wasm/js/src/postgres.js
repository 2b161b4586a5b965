// The entry `hopline/postgres`: a store in a PostgreSQL database, which any number of machines may share. postgres.d.ts documents it, and
// `postgres.sql`, which Python has as well, has what the database does. The rules are those of Python's store.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";

import { hide } from "./hide.js";
import { Address, Link, MaybeDone, NotDone, now } from "./postgres-link.js";

/** The version of the schema that this client knows. */
const VERSION = 1;
const PAGE = 500;
/** Seconds that claims outlive their owner's last sign of life, and before that those in which they are not trusted any more. */
const TTL = 60;
const MARGIN = 5;
const VOUCHED = 20;
const RENEW = TTL / 4;
const IDLE = 30;
const LOOK = 5;
const CLOSING = 4;
const GRACE = 2;
const SWEEPS = 0.05;
/** The longest time, in seconds, in which a server that can't be reached is tried again. */
const REACHING = 2;
/** Errors that go by: two calls at once, and a server that begins or is full. */
const AGAIN = ["40001", "40P01", "55P03", "53300", "57P03"];
const [LATE, LOST_COMMITS] = ["HL001", "HL003"];
const BROKEN = "the database has lost what it had confirmed, as after a failover without a synchronous standby, or a return to a backup: nothing more is bought";

/** The program's own context: the signs of life keep no request's. */
const root = AsyncLocalStorage.snapshot();

/** An owner of names: a client, until its claims end. */
class Owner {
  id = randomUUID();
  /** The last call, and the last one that was answered. */
  number = 0;
  seen = 0;
  /** The end of its claims, counted from before the last sign of life was sent; none before the first. */
  until;

  /** @param former the owner before it, until the database knows that it has left */
  constructor(former) {
    this.former = former;
  }
}

/** All that a client has, from its first call until it is closed. */
class Held {
  owner = new Owner();
  link;
  /** The server's clock less this machine's, or a little less. */
  clock;
  broken;
  isRenewing = false;
  isOver = false;
  /** The calls take turns, on one connection. */
  turns = Promise.resolve();
  isBusy = false;
  wake = () => {};

  cut() {
    this.link?.end();
    this.link = undefined;
  }

  setClock(told) {
    this.clock = Number(told) - now();
  }

  /** When a call is sent by the server's clock, and within what time it may be done. */
  timed(until) {
    const at = now();
    const sent = this.clock === undefined ? "null" : `to_timestamp(${(at + this.clock).toFixed(6)})`;
    return `${sent}, ${interval(Math.max(0.001, until - at))}`;
  }
}

export class PostgresStore {
  #address;
  #schema;
  #timeout;
  #now;
  #lost;
  #held = new Held();

  constructor(address, { schema = "hopline", timeout = 10_000, now: clock } = {}) {
    if (!(timeout > 0 && timeout <= 25_000)) throw new RangeError("`timeout` is more than 0 and at most 25 000 milliseconds");
    this.#address = new Address(typeof address?.reveal === "function" ? address.reveal() : address);
    this.#schema = `"${schema.replaceAll('"', '""')}"`;
    this.#timeout = timeout / 1000;
    this.#now = clock;
  }

  async claim(names, most) {
    for (;;) {
      const { held, owner, rows } = await this.#owned("claim", `${texts(names)}, ${Math.trunc(most)}, ${this.#at()}`);
      const [isAlive, , kept] = rows.at(-1);
      if (isAlive !== "t") this.#endClaims(held, owner);
      // Claims that ended meanwhile were told, so what was granted to that owner is claimed again.
      else if (held.owner === owner) {
        const got = rows.slice(0, -1).filter(([, name]) => name !== null);
        return got.length > 0 ? { claimed: new Map(got.map(([, name, data]) => [name, bytes(data)])) } : { busy: bytes(kept) };
      }
    }
  }

  async put(name, data, { new: isNew = false, keepFor, release = false } = {}) {
    const keep = keepFor === undefined ? "null" : interval(keepFor / 1000);
    const given = `${text(name)}, decode('${Buffer.from(data).toString("hex")}', 'hex'), ${Boolean(isNew)}, ${keep}, ${Boolean(release)}, ${this.#at()}`;
    for (;;) {
      const { held, owner, rows: [[isAlive, isDone]] } = await this.#owned("put", given);
      if (isAlive === "t" || isDone === "t") return isDone === "t" ? "done" : "lost";
      this.#endClaims(held, owner);
      if (!isNew) return "lost";
    }
  }

  async delete(name) {
    const { held, owner, rows: [[isAlive, isDone]] } = await this.#owned("delete", `${text(name)}, ${this.#at()}`);
    if (isAlive !== "t") this.#endClaims(held, owner);
    return isDone === "t" ? "done" : "lost";
  }

  async release(names) {
    // An owner that made no call yet owns nothing.
    if (this.#held.owner.number > 0) await this.#owned("release", `${names === undefined ? "null" : texts(names)}, false`);
  }

  async list(space, { after, open = false } = {}) {
    const given = `'${this.#held.owner.id}', ${text(space)}, ${after === undefined ? "null" : text(after)}, ${Boolean(open)}, ${this.#at()}`;
    const rows = await this.#alone((held) => this.#call(held, () => `select * from ${this.#schema}.list(${given})`));
    return { entries: rows.slice(0, PAGE).map(([name, data, whose]) => ({ name, data: bytes(data), whose })), more: rows.length > PAGE };
  }

  async spend(space, { day, entry, amount, cap }) {
    const numbers = `${decimal(amount)}, ${day === undefined ? "null" : Math.trunc(day)}, ${cap === undefined ? "null" : decimal(cap)}`;
    const { held, owner, rows: [[isAlive, isGranted, on, total]] } = await this.#owned("spend", `${text(space)}, ${text(entry)}, ${numbers}, ${this.#at()}`);
    if (isAlive !== "t") this.#endClaims(held, owner);
    return isGranted === "t" ? { granted: Number(on) } : { over: total, day: Number(on) };
  }

  /** Releases everything. Any later call is another owner's. */
  async close() {
    const held = this.#held;
    held.isOver = true;
    held.wake();
    try {
      if (held.owner.number > 0 && held.broken === undefined) await this.#owned("release", "null, true");
    } catch (error) {
      process.emitWarning(`the database does not know that a client has closed, so its names stay busy for ${TTL} s: ${error.message}`, "HoplineWarning");
    } finally {
      this.#held = new Held();
      held.cut();
    }
  }

  onLost(lost) {
    this.#lost = lost;
  }

  vouches() {
    const { broken, owner } = this.#held;
    return broken === undefined && (owner.until === undefined || now() + VOUCHED < owner.until - MARGIN);
  }

  toJSON() {
    return `PostgresStore(${this.#address.shown})`;
  }

  [Symbol.for("nodejs.util.inspect.custom")]() {
    return this.toJSON();
  }

  #at() {
    return this.#now === undefined ? "null" : `to_timestamp(${(this.#now() / 1000).toFixed(6)})`;
  }

  /** Does some work while no other call of this client is made. */
  #alone(work) {
    const held = this.#held;
    const turn = held.turns.then(async () => {
      held.isBusy = true;
      try {
        return await work(held);
      } finally {
        held.isBusy = false;
      }
    });
    held.turns = turn.catch(() => {});
    return turn;
  }

  /** Makes a call of this client. Its number tells its repeats from later calls. */
  #owned(call, given) {
    return this.#alone(async (held) => {
      const { owner } = held;
      const number = (owner.number += 1);
      const enter = call === "release" ? "" : `${interval(TTL)}, `;
      const statement = (timed) => {
        const first = owner.former === undefined ? "" : `select ${this.#schema}.leave('${owner.former}'); `;
        return `${first}select * from ${this.#schema}.${call}('${owner.id}', ${number}, ${owner.seen}, ${timed}, ${enter}${given})`;
      };
      const begun = now();
      const rows = await this.#call(held, statement);
      owner.seen = number;
      owner.former = undefined;
      if (rows.at(-1)[0] === "t") owner.until = Math.max(owner.until ?? 0, begun + TTL);
      this.#beginRenewing(held);
      return { held, owner, rows };
    });
  }

  /** Makes a statement, and repeats it as long as that may help. */
  async #call(held, statement) {
    const begun = now();
    const until = begun + (held.isOver ? Math.min(this.#timeout, CLOSING) : this.#timeout);
    for (let isMaybe = false, pause = 0; ; pause = Math.min(Math.max(pause * 2, 0.02), 0.5)) {
      if (held.broken !== undefined) throw refused(held.broken);
      let helps;
      let said;
      try {
        return await this.#once(held, statement, until);
      } catch (error) {
        if (error instanceof MaybeDone) {
          [isMaybe, said, helps] = [true, error.message, now() < until];
          held.cut();
        } else if (error instanceof NotDone) {
          [said, helps] = this.#refused(held, error, begun, until);
        } else {
          throw error;
        }
      }
      if (!helps) throw isMaybe ? new Error(said) : refused(said);
      await sleep(Math.min(pause * (0.5 + Math.random()), Math.max(0, until - now())));
    }
  }

  async #once(held, statement, until) {
    if (!held.link?.isOpen) {
      held.cut();
      held.link = await Link.open(this.#address, until);
    }
    const { link } = held;
    if (held.clock === undefined) await this.#greet(held, link, until);
    // The server ends what takes too long before this client gives it up.
    const told = await link.ask(message(statement(held.timed(until)), until), until + GRACE);
    held.setClock(told.at(-1)[0][0]);
    return told.at(-2);
  }

  async #greet(held, link, until) {
    let told;
    try {
      told = await link.ask(message(`select *, current_setting('server_version_num') from ${this.#schema}.greet()`, until), until);
    } catch (error) {
      if (!["3F000", "42883"].includes(error.state)) throw error;
      throw new NotDone("the database has no tables of Hopline: `hopline store init` of Python, or postgres.sql of this package, makes them", error.state);
    }
    const [[[, worksFrom, version]], [[clock]]] = told;
    if (Number(version) < 130_000) throw new NotDone(`PostgreSQL 13 or later is needed, and this is ${Math.trunc(version / 10_000)}`, "HL005");
    if (Number(worksFrom) > VERSION) throw new NotDone("the tables are those of a newer version of Hopline", "HL005");
    held.setClock(clock);
  }

  /** Returns what to say, and whether to try again. */
  #refused(held, { message, state }, begun, until) {
    if (state === LOST_COMMITS) {
      this.#break(held);
      return [BROKEN, false];
    }
    if (state === "") return [message, now() < Math.min(until, begun + REACHING)];
    if (state === LATE) held.clock = undefined;
    return [message, now() < until && [...AGAIN, LATE].includes(state)];
  }

  /** The claims have ended: what comes is another owner's, and the client knows before it claims again. */
  #endClaims(held, owner) {
    if (held.owner !== owner) return;
    held.owner = new Owner(owner.number > 0 ? owner.id : owner.former);
    if (this.#held === held) this.#lost?.();
  }

  #break(held) {
    held.broken = BROKEN;
    process.emitWarning(BROKEN, "HoplineWarning");
    this.#lost?.();
  }

  #beginRenewing(held) {
    if (held.isRenewing || held.isOver) return;
    held.isRenewing = true;
    const store = new WeakRef(this);
    root(() => void PostgresStore.#keep(store, held));
  }

  /** Renews the claims until the store is closed or dropped, and closes the connection of calls when it is idle. */
  static async #keep(store, held) {
    let link;
    for (let due = now() + RENEW; ; ) {
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, Math.min(Math.max(0, due - now()), LOOK) * 1000);
        timer.unref();
        held.wake = () => (clearTimeout(timer), resolve());
      });
      const found = store.deref();
      if (held.isOver || found?.#held !== held) break;
      const { until } = held.owner;
      if (now() >= due || (until !== undefined && now() >= until - MARGIN)) {
        link = await found.#renew(held, link);
        due = now() + (link === undefined ? 1 : RENEW);
      }
      if (!held.isBusy && held.link !== undefined && now() > held.link.used + IDLE) held.cut();
    }
    link?.end();
  }

  /** Renews the claims of this client. Returns the connection if that worked. */
  async #renew(held, link) {
    const { owner } = held;
    const begun = now();
    if (owner.until !== undefined && owner.until - MARGIN <= begun) {
      this.#endClaims(held, owner);
      return link;
    }
    if (owner.until === undefined || held.broken !== undefined) return link;
    const until = Math.min(begun + RENEW / 3, owner.until);
    try {
      link = link?.isOpen ? link : await Link.open(this.#address, until);
      const statement = `select * from ${this.#schema}.renew('${owner.id}', ${owner.seen}, ${held.timed(until)}, ${Math.random() < SWEEPS})`;
      const [[[isAlive]], [[clock]]] = await link.ask(message(statement, until), until);
      held.setClock(clock);
      if (isAlive === "t") owner.until = Math.max(owner.until, begun + TTL);
      else this.#endClaims(held, owner);
      return link;
    } catch (error) {
      if (error.state === LOST_COMMITS) this.#break(held);
      held.clock = undefined;
      link?.end();
      return undefined;
    }
  }
}

/** An error of a call that was certainly not done. */
function refused(text) {
  const error = new Error(text);
  hide(error, "notOpened", true);
  return error;
}

/** A statement as one message, and so as one transaction, with a limit of time that also holds behind a pooler. */
function message(statement, until) {
  const ms = Math.max(1, Math.round((until - now()) * 1000));
  return `set transaction isolation level read committed, read write; set local statement_timeout = ${ms}; ${statement}; select extract(epoch from clock_timestamp())`;
}

const bytes = (told) => (told === null || told === undefined ? undefined : new Uint8Array(Buffer.from(told, "hex")));

/** A literal. Names have plain letters; of others no sign means anything to the server. */
const text = (given) => (/^[0-9A-Za-z._-]*$/.test(given) ? `'${given}'` : `convert_from(decode('${Buffer.from(given).toString("hex")}', 'hex'), 'UTF8')`);
const texts = (given) => `array[${given.map(text).join(", ")}]::text[]`;
const interval = (seconds) => `make_interval(secs => ${seconds.toFixed(6)})`;
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

function decimal(given) {
  if (!/^-?\d+(\.\d+)?$/.test(given)) throw new TypeError("an amount is a decimal as text");
  return `${given}::numeric`;
}
