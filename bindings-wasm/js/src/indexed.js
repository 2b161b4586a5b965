import { Alarm, pause } from "./clock.js";
import { notOpened, refuse } from "./error.js";
import { claimable, count, enter, isHere, leave } from "./stores.js";

/*
 * One database, which all tabs and workers of an origin share. Each client has a row in `owners`, and holds a Web Lock of the same name,
 * which the browser takes back however a tab ends. A frozen page may keep its locks, so the row also says when its client was last alive.
 * Locks and transactions can't be held together, so the row is a fence as well: a client that takes over another one's names removes its
 * row first, and a client without a row owns nothing.
 */
const [OWNERS, CLAIMS, RECORDS, DAYS] = ["owners", "claims", "records", "days"];
/** Version 1 was another format, which this package does not read. */
const VERSION = 2;

/** The most names of a list, and the most that are dropped at a time. */
const PAGE = 500;
/**
 * The interval of a client's signs of life, and the time for which one counts, in milliseconds. A hidden page may have its timers only once
 * a minute, so it is called first, and has a moment to answer.
 */
const BEAT = 10_000;
const LIFE = 60_000;
const MOMENT = 2_000;
/** The longest wait for the opening of the database. */
const PATIENCE = 10_000;
/** A request may go out for that long after the last sign of life, so that it is over before another client takes its name. */
const SURE = LIFE - 20_000;

/** The browser's names of errors, and their meaning to people. */
const TROUBLE = {
  OldFormat: "the database was made by an older version of this package; choose another name",
  QuotaExceededError: "the browser has no more space for this site",
  VersionError: "the database was made by a newer version of this package",
  NotFoundError: "a database of this name was not made by Hopline; choose another name",
  SecurityError: "the browser is set to let this site keep nothing",
  TimeoutError: "it could not be opened in time, since it is to be deleted or changed and another tab is in the way; close the other tabs",
  InvalidStateError: "another tab changed or deleted it, or the browser keeps nothing in this mode; reload the page",
};

/** The errors of a transaction on a connection that the browser closed. */
const CLOSED = new Set(["InvalidStateError", "UnknownError"]);

/** Thrown out of a transaction: other owners, whose life is still to be checked. */
class Strangers {
  constructor(owners) {
    this.owners = owners;
  }
}

/** The records of an `IndexedDBStore`. */
export class Database {
  #name;
  #now;
  #opening;
  #database;
  /** The number of closings. */
  #openings = 0;
  /** While a connection that the browser closed is made anew. */
  #connecting;
  /** The request for a connection that is out, and a marker of the last call that waits for it. */
  #request;
  #waiter;
  /** The channel by which others ask whether it lives. */
  #channel;
  /** The name of this client's row and lock; a new one each time that it lost them. */
  #own;
  #release;
  #timer;
  /** The last sign of life, by both clocks: one may be set, the other may stand still while the machine sleeps. */
  #seen;
  /** While it gets another row. */
  #renewing;
  #lost = () => {};

  constructor(name, now) {
    this.#name = name;
    this.#now = now;
  }

  onLost(tell) {
    this.#lost = tell;
  }

  vouches() {
    // A client that owns nothing loses nothing.
    if (!this.#seen) return true;
    const [wall, monotonic] = times().map((time, n) => time - this.#seen[n]);
    return (wall >= 0 && wall < SURE && monotonic < SURE) || this.#stands();
  }

  /** Returns true if it still owns its names: a page that wakes finds out. */
  async #stands() {
    const own = this.#own;
    try {
      await this.#owning([], async () => {});
      return own === this.#own;
    } catch {
      return false;
    }
  }

  claim(names, most) {
    return this.#asking((look) => this.#owning([CLAIMS, RECORDS], async (at) => {
      const found = await look.all(at, names);
      const wanted = claimable(found).slice(0, most);
      for (const { name, record } of wanted) {
        at(CLAIMS).put({ owner: this.#own }, name);
        // Data whose time is over counts as missing.
        if (!record) at(RECORDS).delete(name);
      }
      if (wanted.length > 0) return { claimed: new Map(wanted.map(({ name, record }) => [name, record?.data])) };
      return { busy: found.find(({ record }) => record)?.record.data, here: found.some(({ owner }) => isHere(owner)) };
    }));
  }

  put(name, data, { new: isNew = false, keepFor, release = false } = {}) {
    return this.#asking((look) => this.#owning([CLAIMS, RECORDS], async (at) => {
      const [{ whose, record }] = await look.all(at, [name]);
      if (whose !== "mine" && !(isNew && whose === "free" && !record)) return "lost";
      at(RECORDS).put(keepFor === undefined ? { data } : { data, until: this.#now() + keepFor }, name);
      if (release) at(CLAIMS).delete(name);
      else at(CLAIMS).put({ owner: this.#own }, name);
      return "done";
    }, "lost"));
  }

  delete(name) {
    return this.#asking((look) => this.#owning([CLAIMS, RECORDS], async (at) => {
      const [{ whose, record }] = await look.all(at, [name]);
      if (whose !== "mine") return record ? "lost" : "done";
      at(RECORDS).delete(name);
      at(CLAIMS).delete(name);
      return "done";
    }, "lost"));
  }

  async release(names) {
    // A client that never opened the database owns nothing in it.
    if (!this.#opening) return;
    await this.#opening;
    await this.#within([CLAIMS], "readwrite", async (at) => {
      const owned = await asked(at(CLAIMS).index("owner").getAllKeys(this.#own));
      for (const name of owned) if (!names || names.includes(name)) at(CLAIMS).delete(name);
    });
  }

  list(space, { after, open = false } = {}) {
    // A slash comes next after a point, in the order of letters.
    const range = IDBKeyRange.bound(after ?? `${space}.`, `${space}/`, after !== undefined, true);
    return this.#asking((look) => this.#within([OWNERS, CLAIMS, RECORDS], "readonly", async (at) => {
      const entries = [];
      await each(at(RECORDS).openCursor(range), async (name, record) => {
        if (open && record.until !== undefined) return true;
        const { whose, record: there } = await look.one(at, name);
        if (there) entries.push({ name, data: there.data, whose });
        return entries.length <= PAGE;
      });
      look.done();
      return { entries: entries.slice(0, PAGE), more: entries.length > PAGE };
    }));
  }

  async spend(space, what) {
    await this.#open();
    return this.#within([DAYS], "readwrite", async (at) => {
      const days = await asked(at(DAYS).getAllKeys(IDBKeyRange.bound([space], [space, []])));
      return count(this.#now(), days.map(([, day]) => day), what, {
        read: (day) => asked(at(DAYS).get([space, day])),
        write: (day, entries) => void at(DAYS).put(entries, [space, day]),
        drop: (day) => void at(DAYS).delete([space, day]),
      });
    });
  }

  async close() {
    await this.#opening?.catch(() => {});
    // A name that can't be released here is taken over like any other.
    if (this.#database) await this.#bury([this.#own]).catch(() => {});
    this.#leave();
  }

  #leave() {
    this.#openings += 1;
    clearInterval(this.#timer);
    leave(this.#own);
    this.#channel?.close();
    this.#release?.();
    this.#database?.close();
    this.#own = this.#release = this.#database = this.#channel = this.#opening = this.#seen = undefined;
  }

  /** Opens the database with the first call. If that fails, the next call tries again. */
  async #open() {
    this.#opening ??= this.#begin().catch((error) => {
      this.#leave();
      throw notOpened(error);
    });
    await this.#opening;
  }

  async #begin() {
    if (!globalThis.navigator?.locks) {
      throw this.#failed("it needs Web Locks, which a browser has in a secure context only: serve the page over https or from localhost");
    }
    try {
      await this.#connect();
      this.#channel = new BroadcastChannel(this.#lock(""));
      this.#channel.onmessage = ({ data }) => data === this.#own && this.#beat();
      await this.#register();
      await this.#tidy();
    } catch (error) {
      throw error?.kind ? error : this.#failed(undefined, error);
    }
    this.#timer = setInterval(() => this.#beat(), BEAT);
  }

  /**
   * Connects. A browser closes connections when it clears a site's data or lacks memory, and this one is closed when others want to change
   * the database.
   */
  async #connect() {
    const opening = this.#openings;
    const database = await this.#requested();
    // The store was closed meanwhile.
    if (opening !== this.#openings) return database?.close();
    this.#database = database;
    database.onclose = () => this.#closed(database);
    database.onversionchange = () => {
      database.close();
      this.#closed(database);
    };
  }

  /**
   * Returns a connection, in time. A request that takes longer stays out, and the next call waits for that one: further requests would
   * queue behind it. A connection that comes when no call waits for it is closed; one that a later call waits for is not given to an
   * earlier one.
   */
  #requested() {
    const waiter = (this.#waiter = Symbol());
    const request = (this.#request ??= connect(this.#name).finally(() => (this.#request = undefined)));
    return new Promise((resolve, reject) => {
      let isLate = false;
      const alarm = new Alarm(() => {
        isLate = true;
        reject(Object.assign(new Error("it was not opened in time"), { name: "TimeoutError" }));
      }, PATIENCE);
      const came = (database) => {
        if (waiter !== this.#waiter) resolve();
        else if (isLate) database.close();
        else resolve(database);
      };
      request.finally(() => alarm.clear()).then(came, reject);
    });
  }

  /** The next call, or the next sign of life, connects again and finds out which names it still owns; until then nothing is vouched for. */
  #closed(database) {
    if (database !== this.#database) return;
    this.#database = undefined;
    this.#seen &&= [-Infinity, -Infinity];
  }

  /** The connection; a new one if the browser closed it. */
  async #connected() {
    if (!this.#opening) throw this.#failed("it is closed");
    if (!this.#database) await (this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined)));
    if (!this.#database) throw this.#failed("it is closed");
    return this.#database;
  }

  #lock(owner) {
    return `hopline/${this.#name}/${owner}`;
  }

  /** Gets a row, and a lock of its own. */
  async #register() {
    this.#release?.();
    const own = crypto.randomUUID();
    // The lock is held before others can see the row.
    this.#release = await hold(this.#lock(own));
    const seen = times();
    await this.#within([OWNERS], "readwrite", async (at) => at(OWNERS).put({ seen: seen[0] }, own));
    leave(this.#own);
    enter(own);
    [this.#own, this.#seen] = [own, seen];
  }

  /** Gives a sign of life. The next call finds out about its failures. */
  #beat() {
    if (this.#connecting) return;
    this.#owning([], async () => {}).catch(() => {});
  }

  /**
   * Does some work as the owner that this client is, which is a sign of life. If its row is gone, it owns nothing any more: it becomes
   * another owner, its core is informed, and `otherwise` is the answer; without one the work is done as that owner.
   */
  async #owning(names, work, otherwise) {
    await this.#open();
    for (;;) {
      await this.#renewing;
      const [own, seen] = [this.#own, times()];
      const done = await this.#within([OWNERS, ...names], "readwrite", async (at) => {
        if ((await asked(at(OWNERS).getKey(own))) === undefined) return undefined;
        at(OWNERS).put({ seen: seen[0] }, own);
        return { answer: await work(at) };
      });
      if (done) {
        if (own === this.#own) this.#seen = seen;
        return done.answer;
      }
      if (own === this.#own) await (this.#renewing ??= this.#renew());
      if (otherwise !== undefined) return otherwise;
    }
  }

  async #renew() {
    try {
      await this.#register();
    } finally {
      this.#renewing = undefined;
      this.#lost();
    }
  }

  /** Does work that depends on which owners live. Unknown ones are checked outside of its transaction; then the work is done again. */
  async #asking(work) {
    await this.#open();
    const living = new Set();
    for (;;) {
      try {
        return await work(this.#looking(living));
      } catch (error) {
        if (!(error instanceof Strangers)) throw error;
        await this.#meet(error.owners, living);
      }
    }
  }

  /** Looks at names within a transaction. */
  #looking(living) {
    const strangers = new Set();
    const whose = async (at, owner) => {
      // An owner without a row owns nothing any more.
      if (owner === undefined || (await asked(at(OWNERS).getKey(owner))) === undefined) return "free";
      if (owner === this.#own) return "mine";
      if (!living.has(owner)) strangers.add(owner);
      return "other";
    };
    const one = async (at, name) => {
      const [claim, found] = await Promise.all([asked(at(CLAIMS).get(name)), asked(at(RECORDS).get(name))]);
      const holder = await whose(at, claim?.owner);
      const isOver = holder === "free" && found?.until !== undefined && found.until <= this.#now();
      return { name, whose: holder, owner: claim?.owner, record: isOver ? undefined : found };
    };
    const done = () => {
      if (strangers.size > 0) throw new Strangers(strangers);
    };
    const all = async (at, names) => {
      const found = [];
      for (const name of names) found.push(await one(at, name));
      done();
      return found;
    };
    return { one, all, done };
  }

  /** Finds out which owners live, and takes over the names of the others. */
  async #meet(strangers, living) {
    const silent = await this.#silent(strangers);
    if (silent.size > 0) {
      for (const owner of silent) this.#channel.postMessage(owner);
      for (let waited = 0; waited < MOMENT; waited += MOMENT / 10) await pause(MOMENT / 10);
    }
    const locks = await navigator.locks.query();
    const held = new Set(locks.held.map(({ name }) => name));
    const stillSilent = silent.size > 0 ? await this.#silent(silent) : silent;
    const isGone = (owner) => !held.has(this.#lock(owner)) || stillSilent.has(owner);
    await this.#bury([...strangers].filter(isGone));
    for (const owner of strangers) if (!isGone(owner)) living.add(owner);
  }

  /** The owners without a sign of life for long enough. */
  #silent(owners) {
    return this.#within([OWNERS], "readonly", async (at) => {
      const silent = new Set();
      for (const owner of owners) {
        const row = await asked(at(OWNERS).get(owner));
        if (row && Math.abs(Date.now() - row.seen) >= LIFE) silent.add(owner);
      }
      return silent;
    });
  }

  /** Removes the rows and claims of owners. */
  #bury(owners) {
    return this.#within([OWNERS, CLAIMS], "readwrite", async (at) => {
      for (const owner of owners) {
        at(OWNERS).delete(owner);
        for (const name of await asked(at(CLAIMS).index("owner").getAllKeys(owner))) at(CLAIMS).delete(name);
      }
    });
  }

  /** Drops the remains of dead owners, and some of the expired names. */
  async #tidy() {
    const owners = await this.#within([OWNERS], "readonly", (at) => asked(at(OWNERS).getAllKeys()));
    // A living owner had a lock before a row.
    const locks = await navigator.locks.query();
    const held = new Set(locks.held.map(({ name }) => name));
    await this.#bury(owners.filter((owner) => !held.has(this.#lock(owner))));
    await this.#within([CLAIMS, RECORDS], "readwrite", async (at) => {
      const over = await asked(at(RECORDS).index("until").getAllKeys(IDBKeyRange.upperBound(this.#now()), PAGE));
      for (const name of over) if ((await asked(at(CLAIMS).getKey(name))) === undefined) at(RECORDS).delete(name);
    });
  }

  /** Does some work in one transaction, and waits until it is on the disk: all of it, or nothing. */
  async #within(names, mode, work) {
    let thrown;
    try {
      const durability = names.includes(RECORDS) || names.includes(DAYS) ? "strict" : "relaxed";
      let database = await this.#connected();
      let transaction;
      try {
        transaction = database.transaction(names, mode, { durability });
      } catch (error) {
        // Not every browser reports that it closed a connection. Nothing was done by then.
        if (!CLOSED.has(error.name)) throw error;
        this.#closed(database);
        database = await this.#connected();
        transaction = database.transaction(names, mode, { durability });
      }
      const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      // The failure is handled below.
      done.catch(() => {});
      try {
        const given = await work((name) => transaction.objectStore(name));
        await done;
        return given;
      } catch (error) {
        thrown = error;
        try {
          transaction.abort();
        } catch {
          // The transaction is over already.
        }
        throw error;
      }
    } catch (error) {
      throw thrown instanceof Strangers || error?.kind ? error : this.#failed(undefined, error);
    }
  }

  #failed(why, cause) {
    const what = why ?? TROUBLE[cause?.name] ?? "the browser could not do it";
    return refuse("store", "store", `the database \`${this.#name}\`: ${what}`, cause && { cause });
  }
}

/** Both clocks. */
const times = () => [Date.now(), performance.now()];

/** The result of a request. */
function asked(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Goes through a cursor until the work returns that it is enough. */
function each(request, work) {
  return new Promise((resolve, reject) => {
    request.onerror = () => reject(request.error);
    request.onsuccess = async () => {
      const cursor = request.result;
      if (!cursor) return resolve();
      try {
        if (await work(cursor.key, cursor.value)) cursor.continue();
        else resolve();
      } catch (error) {
        reject(error);
      }
    };
  });
}

/** Opens the database. If another page wants to delete it, and a third one blocks that, this can take forever. */
function connect(name) {
  return new Promise((resolve, reject) => {
    const request = globalThis.indexedDB.open(name, VERSION);
    let isOld = false;
    request.onupgradeneeded = ({ oldVersion }) => {
      isOld = oldVersion !== 0;
      if (isOld) return request.transaction.abort();
      request.result.createObjectStore(OWNERS);
      request.result.createObjectStore(CLAIMS).createIndex("owner", "owner");
      request.result.createObjectStore(RECORDS).createIndex("until", "until");
      request.result.createObjectStore(DAYS);
    };
    request.onerror = () => reject(isOld ? Object.assign(new Error("it has another format"), { name: "OldFormat" }) : request.error);
    request.onsuccess = () => resolve(request.result);
  });
}

/** Holds a lock until the returned function is called, or the page ends. */
function hold(name) {
  return new Promise((resolve, reject) => {
    navigator.locks.request(name, () => new Promise((release) => resolve(release))).catch(reject);
  });
}
