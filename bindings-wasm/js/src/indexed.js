import { notOpened, refuse } from "./error.js";
import { claimable, count, enter, isHere, leave } from "./stores.js";

/*
 * One database, which all tabs and workers of an origin share. Each client has a row in `owners`, and holds a Web Lock of the same
 * name, which the browser takes back however a tab ends. A page that is frozen may keep its locks, so the row also says when its
 * client was last alive. Locks and transactions can't be had together, so the row is a fence as well: whoever takes over what a client
 * left removes its row first, and a client without a row owns nothing.
 */
const [OWNERS, CLAIMS, RECORDS, DAYS] = ["owners", "claims", "records", "days"];
/** Version 1 was another format, which nothing reads. */
const VERSION = 2;

/** How many names a list has, and how many are dropped at a time. */
const PAGE = 500;
/**
 * How often a client says that it lives, and for how long that counts, in milliseconds. A page that nobody sees may have its timers only
 * once a minute, so it is called first, and has a moment to answer.
 */
const BEAT = 10_000;
const LIFE = 60_000;
const MOMENT = 2_000;
/** How long it may take to open the database. */
const PATIENCE = 10_000;
/** A request may go out for as long after the last sign of life, so that it is over before anybody takes its name. */
const SURE = LIFE - 20_000;

/** What a browser calls it, and what it means to people. */
const TROUBLE = {
  OldFormat: "the database was made by an older version of this package; choose another name",
  QuotaExceededError: "the browser has no more space for this site",
  VersionError: "the database was made by a newer version of this package",
  NotFoundError: "a database of this name was not made by Hopline; choose another name",
  SecurityError: "the browser is set to let this site keep nothing",
  TimeoutError: "it could not be opened in time, since it is to be deleted or changed and another tab is in the way; close the other tabs",
  InvalidStateError: "another tab changed or deleted it, or the browser keeps nothing in this mode; reload the page",
};

/** How a transaction fails to begin on a connection that the browser closed. */
const CLOSED = new Set(["InvalidStateError", "UnknownError"]);

/** Thrown out of a transaction: other owners, of whom it is still to be found out whether they live. */
class Strangers {
  constructor(owners) {
    this.owners = owners;
  }
}

/** Records in a database of the browser, which tabs and workers share. hopline.d.ts documents it. */
export class IndexedDBStore {
  #name;
  #now;
  #opening;
  #database;
  /** How often it was closed. */
  #openings = 0;
  /** While a connection that the browser closed is made anew. */
  #connecting;
  /** The request for a connection that is out, and what stands for the last call that waits for it. */
  #request;
  #waiter;
  /** Hears whether it still lives. */
  #channel;
  /** The name of this client's row and lock; another one each time that it lost them. */
  #own;
  #release;
  #timer;
  /** When it last said that it lives, by both clocks: one may be set, the other may stand still while the machine sleeps. */
  #seen;
  /** While it gets another row. */
  #renewing;
  #lost = () => {};

  constructor(name, { now = Date.now } = {}) {
    if (typeof name !== "string" || name === "") throw refuse("invalid", "store", "`name` must be the name of a database");
    this.#name = name;
    this.#now = now;
  }

  onLost(tell) {
    this.#lost = tell;
  }

  vouches() {
    // Who owns nothing loses nothing.
    if (!this.#seen) return true;
    const [wall, monotonic] = times().map((time, n) => time - this.#seen[n]);
    return (wall >= 0 && wall < SURE && monotonic < SURE) || this.#stands();
  }

  /** Whether it still owns what it owned: a page that wakes finds out. */
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
        // What is there no more, since its time is over.
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
    // Who has never opened the database owns nothing in it.
    if (!this.#opening) return;
    await this.#opening;
    await this.#within([CLAIMS], "readwrite", async (at) => {
      const owned = await asked(at(CLAIMS).index("owner").getAllKeys(this.#own));
      for (const name of owned) if (!names || names.includes(name)) at(CLAIMS).delete(name);
    });
  }

  list(space, { after, open = false } = {}) {
    // A slash is what comes next after a point, in the order of letters.
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
    // What can't be tidied up here is taken over like anything else.
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

  /** Opens the database with the first call. Where that fails, the next call tries again. */
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

  /** Connects. A browser closes connections when it clears a site's data or lacks memory, and this one is closed where others want to change the database. */
  async #connect() {
    const opening = this.#openings;
    const database = await this.#requested();
    // It was closed meanwhile.
    if (opening !== this.#openings) return database?.close();
    this.#database = database;
    database.onclose = () => this.#closed(database);
    database.onversionchange = () => {
      database.close();
      this.#closed(database);
    };
  }

  /**
   * A connection, in time. A request that takes longer stays out, and the next call waits for that one: more of them would stand behind it. A
   * connection that comes when no call waits for it is closed; one that a later call waits for is not given to an earlier one.
   */
  #requested() {
    const waiter = (this.#waiter = Symbol());
    const request = (this.#request ??= connect(this.#name).finally(() => (this.#request = undefined)));
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(Object.assign(new Error("it was not opened in time"), { name: "TimeoutError" }));
      }, PATIENCE);
      const came = (database) => {
        if (waiter !== this.#waiter) resolve();
        else if (isLate) database.close();
        else resolve(database);
      };
      request.finally(() => clearTimeout(timer)).then(came, reject);
    });
  }

  /** The next call, or the next sign of life, connects again and finds out what it still owns; until then nothing is vouched for. */
  #closed(database) {
    if (database !== this.#database) return;
    this.#database = undefined;
    this.#seen &&= [-Infinity, -Infinity];
  }

  /** The connection; a new one where the browser closed it. */
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
    // It is held before others can see the row.
    this.#release = await hold(this.#lock(own));
    const seen = times();
    await this.#within([OWNERS], "readwrite", async (at) => at(OWNERS).put({ seen: seen[0] }, own));
    leave(this.#own);
    enter(own);
    [this.#own, this.#seen] = [own, seen];
  }

  /** Says that this client lives. What goes wrong with it is found out by the next call. */
  #beat() {
    if (this.#connecting) return;
    this.#owning([], async () => {}).catch(() => {});
  }

  /**
   * Does a piece of work as the owner that this client is, which is a sign of life. Where its row is gone, it owns nothing any more: it
   * becomes another owner, its core is told, and `otherwise` is the answer; without one the work is done as that owner.
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

  /** Does what depends on who lives. Whom it does not know is asked for outside of its transaction; then it is done again. */
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
      // Without a row it owns nothing any more, whoever it is.
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

  /** Finds out which owners live, and takes over what the others left. */
  async #meet(strangers, living) {
    const silent = await this.#silent(strangers);
    if (silent.size > 0) {
      for (const owner of silent) this.#channel.postMessage(owner);
      for (let waited = 0; waited < MOMENT; waited += MOMENT / 10) await new Promise((resolve) => setTimeout(resolve, MOMENT / 10));
    }
    const locks = await navigator.locks.query();
    const held = new Set(locks.held.map(({ name }) => name));
    const stillSilent = silent.size > 0 ? await this.#silent(silent) : silent;
    const isGone = (owner) => !held.has(this.#lock(owner)) || stillSilent.has(owner);
    await this.#bury([...strangers].filter(isGone));
    for (const owner of strangers) if (!isGone(owner)) living.add(owner);
  }

  /** Those of whom there was no sign of life for long enough. */
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

  /** Drops what owners left that are gone, and some of what may be dropped. */
  async #tidy() {
    const owners = await this.#within([OWNERS], "readonly", (at) => asked(at(OWNERS).getAllKeys()));
    // Whoever lives had a lock before a row.
    const locks = await navigator.locks.query();
    const held = new Set(locks.held.map(({ name }) => name));
    await this.#bury(owners.filter((owner) => !held.has(this.#lock(owner))));
    await this.#within([CLAIMS, RECORDS], "readwrite", async (at) => {
      const over = await asked(at(RECORDS).index("until").getAllKeys(IDBKeyRange.upperBound(this.#now()), PAGE));
      for (const name of over) if ((await asked(at(CLAIMS).getKey(name))) === undefined) at(RECORDS).delete(name);
    });
  }

  /** Does a piece of work in one transaction, and waits until it is on the disk: all of it, or nothing. */
  async #within(names, mode, work) {
    let thrown;
    try {
      const durability = names.includes(RECORDS) || names.includes(DAYS) ? "strict" : "relaxed";
      let database = await this.#connected();
      let transaction;
      try {
        transaction = database.transaction(names, mode, { durability });
      } catch (error) {
        // Not every browser says that it closed a connection. Nothing was done by then.
        if (!CLOSED.has(error.name)) throw error;
        this.#closed(database);
        database = await this.#connected();
        transaction = database.transaction(names, mode, { durability });
      }
      const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      // Whoever hears of it hears of it below.
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
          // It is over already.
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

/** What comes of a request. */
function asked(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Goes through a cursor until the work says that it is enough. */
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

/** Opens the database. Where somebody else wants to delete it, and a third one is in the way, that can take for ever. */
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

/** Holds a lock until the function that it gives is called, or the page ends. */
function hold(name) {
  return new Promise((resolve, reject) => {
    navigator.locks.request(name, () => new Promise((release) => resolve(release))).catch(reject);
  });
}
