import { refuse } from "./error.js";
import { foreign, taken } from "./intents.js";

/*
 * One database, which all tabs and workers of an origin share. Each client has a part of it, and holds a Web Lock for that
 * part, which the browser takes back however a tab ends. Whoever gets the lock of a part may take it over, in one
 * transaction. Locks and transactions can't be had together, so a part is also fenced: its client writes only while it is
 * listed, and taking over ends that. A page that the browser froze without its locks finds out so when it wakes.
 */
const [CLIENTS, RECORDS, CLAIMS] = ["clients", "records", "claims"];
const ALL = [CLIENTS, RECORDS, CLAIMS];

const LOST = "this client's part was taken over by another one, or deleted, while this page slept; reload it";
/** What a browser calls it, and what it means to people. */
const TROUBLE = {
  QuotaExceededError: "the browser has no more space for this site",
  VersionError: "the database was made by a newer version of this package",
  NotFoundError: "a database of this name was not made by Hopline; choose another name",
  SecurityError: "the browser is set to let this site keep nothing",
  InvalidStateError: "another tab changed or deleted it, or the browser keeps nothing in this mode; reload the page",
};

/** Records in a database of the browser, which tabs and workers share as processes share a `FolderStore`. */
export class IndexedDBStore {
  #name;
  #database;
  /** The name of this client's part. */
  #own;
  #release;
  #client;
  /** One taking over at a time, and nobody goes on before what was taken over is known to the client. */
  #adopting = Promise.resolve();

  constructor(name) {
    if (typeof name !== "string" || name === "") throw refuse("invalid", "store", "`name` must be the name of a database");
    this.#name = name;
  }

  async open(client) {
    if (this.#own) throw refuse("store", "store", "this store serves another client; give each client one of its own");
    if (!globalThis.navigator?.locks) {
      throw this.#failed("it needs Web Locks, which a browser has in a secure context only: serve the page over https or from localhost");
    }
    this.#client = client;
    const own = (this.#own = crypto.randomUUID());
    try {
      this.#database = await this.#connect();
      // It is held before others can see it.
      this.#release = await hold(this.#lock(own));
      await this.#write([CLIENTS], ({ clients }) => clients.put(Date.now(), own), false);
    } catch (error) {
      this.#leave();
      throw error?.kind ? error : this.#failed(undefined, error);
    }
  }

  /** Takes over what clients of the same account left that are gone; or only the part of one client. */
  adopt(client) {
    const adopted = this.#adopting.then(() => this.#adopt(client));
    this.#adopting = adopted.catch(() => {});
    return adopted;
  }

  async #adopt(only) {
    const others = only ? [only] : await this.#write([CLIENTS], ({ clients }, give) => listed(clients.getAllKeys(), give));
    for (const other of others.filter((other) => other !== this.#own)) {
      await navigator.locks.request(this.#lock(other), { ifAvailable: true }, async (lock) => {
        if (!lock) return;
        const found = await this.#takeOver(other);
        if (found) this.#client.take(found);
        else if (only) throw foreign("store");
      });
    }
  }

  /** Makes all that a client had ours, and gives it, if it is of our account; the other's lock is held meanwhile. */
  #takeOver(other) {
    return this.#write(ALL, ({ clients, records, claims }, give) => {
      const range = part(other);
      const [keys, texts, names] = [records.getAllKeys(range), records.getAll(range), claims.index("client").getAllKeys(other)];
      names.onsuccess = () => {
        const found = keys.result.map(([, record], n) => [record, texts.result[n]]);
        // Whose records they are is for the core to say; those of others are left where their owner will look for them.
        if (!this.#client.fits(found)) return;
        clients.delete(other);
        records.delete(range);
        for (const [record, text] of found) records.put(text, [this.#own, record]);
        for (const name of names.result) claims.put({ client: this.#own }, name);
        give(found);
      };
    });
  }

  /** Makes a name this client's alone. Of two at once, the transactions say who was first. */
  async claim(name) {
    for (let tries = 0; tries < 5; tries += 1) {
      const holder = await this.#write([CLIENTS, CLAIMS], ({ claims }, give) => {
        claims.get(name).onsuccess = ({ target: { result } }) => {
          if (!result) claims.put({ client: this.#own }, name);
          give(result?.client ?? this.#own);
        };
      });
      await this.#adopting;
      if (holder === this.#own) return;
      await this.adopt(holder);
      // Somebody else may be taking it over just now.
      if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 50));
    }
    throw taken("store");
  }

  /** Gives up all claims but these. */
  keepClaims(names) {
    return this.#write([CLIENTS, CLAIMS], ({ claims }) => {
      removeAll(claims, this.#own, names);
    });
  }

  async keep(record, data) {
    await this.#write([CLIENTS, RECORDS], ({ records }) => records.put(data, [this.#own, record]));
  }

  async remove(record) {
    await this.#write([CLIENTS, RECORDS], ({ records }) => records.delete([this.#own, record]));
  }

  /** Lets go: what is left is for the next client. */
  async close() {
    try {
      await this.#write(ALL, ({ clients, records, claims }) => {
        records.count(part(this.#own)).onsuccess = ({ target: { result } }) => {
          if (result > 0) return;
          clients.delete(this.#own);
          removeAll(claims, this.#own);
        };
      });
    } catch {
      // What can't be tidied up here is taken over like anything else.
    }
    this.#leave();
  }

  #leave() {
    this.#release?.();
    this.#database?.close();
    this.#own = this.#release = this.#database = undefined;
  }

  #lock(client) {
    return `hopline/${this.#name}/${client}`;
  }

  #connect() {
    return new Promise((resolve, reject) => {
      const request = globalThis.indexedDB.open(this.#name, 1);
      request.onupgradeneeded = () => {
        for (const name of [CLIENTS, RECORDS]) request.result.createObjectStore(name);
        request.result.createObjectStore(CLAIMS).createIndex("client", "client");
      };
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        // Nobody who wants to change or delete the database waits for us: we are told by our next write.
        request.result.onversionchange = () => request.result.close();
        resolve(request.result);
      };
    });
  }

  /** Does a piece of work in one transaction, and waits until it is on the disk: all of it, or nothing. */
  async #write(names, work, fenced = true) {
    if (!this.#database) throw this.#failed("it could not be opened, or is closed");
    let given;
    let lost = false;
    try {
      const transaction = this.#database.transaction(names, "readwrite", { durability: "strict" });
      const stores = Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)]));
      const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      if (fenced) {
        stores.clients.getKey(this.#own).onsuccess = ({ target: { result } }) => {
          lost = result === undefined;
          if (lost) transaction.abort();
          else work(stores, (value) => (given = value));
        };
      } else {
        work(stores);
      }
      await done;
    } catch (error) {
      throw this.#failed(lost ? LOST : undefined, error);
    }
    return given;
  }

  #failed(why, cause) {
    const what = why ?? TROUBLE[cause?.name] ?? "the browser could not do it";
    return refuse("store", "store", `the database \`${this.#name}\`: ${what}`, cause && { cause });
  }
}

/** The keys of a client's records. */
function part(client) {
  return IDBKeyRange.bound([client], [client, []]);
}

function listed(request, give) {
  request.onsuccess = () => give(request.result);
}

/** Removes a client's claims but for those that are kept. */
function removeAll(claims, client, kept = new Set()) {
  listed(claims.index("client").getAllKeys(client), (names) => {
    for (const name of names) if (!kept.has(name)) claims.delete(name);
  });
}

/** Holds a lock until the function that it gives is called, or the page ends. */
function hold(name) {
  return new Promise((resolve, reject) => {
    navigator.locks.request(name, () => new Promise((release) => resolve(release))).catch(reject);
  });
}
