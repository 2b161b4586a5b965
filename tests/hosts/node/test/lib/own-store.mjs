// A store of a user's own: six async calls over whatever it is that clients share, here a map in memory.

const DAY = 24 * 3600 * 1000;
const PAGE = 500;

/** The data that several stores share, as a database would be. */
export class SharedRecords {
  /** By name: `{ data, until, owner }`; without data it is claimed and was never put. */
  rows = new Map();
  /** By space: the latest day, and by entry what it counts on each day, in parts of ten thousand millionths. */
  days = new Map();
}

export class OwnStore {
  #records;
  #now;

  constructor(records = new SharedRecords(), { now = Date.now } = {}) {
    this.#records = records;
    this.#now = now;
  }

  #row(name) {
    const row = this.#records.rows.get(name);
    if (row && row.owner === undefined && (row.data === undefined || row.until <= this.#now())) {
      this.#records.rows.delete(name);
      return undefined;
    }
    return row;
  }

  async claim(names, most) {
    const rank = (name) => {
      const row = this.#row(name);
      if (row?.owner === this) return 0;
      return row?.data ? 1 : 2;
    };
    const free = names.filter((name) => [undefined, this].includes(this.#row(name)?.owner)).sort((one, other) => rank(one) - rank(other));
    const claimed = new Map();
    for (const name of free.slice(0, most)) {
      const row = { ...this.#row(name), owner: this };
      this.#records.rows.set(name, row);
      claimed.set(name, row.data);
    }
    return claimed.size > 0 ? { claimed } : { busy: names.map((name) => this.#row(name).data).find(Boolean) };
  }

  async put(name, data, { new: isNew, keepFor, release }) {
    const row = this.#row(name);
    if (row?.owner !== this && (row !== undefined || !isNew)) return "lost";
    this.#records.rows.set(name, { data: data.slice(), until: keepFor === undefined ? undefined : this.#now() + keepFor, owner: release ? undefined : this });
    return "done";
  }

  async delete(name) {
    const row = this.#row(name);
    if (row?.data !== undefined && row.owner !== this) return "lost";
    if (row?.owner === this) this.#records.rows.delete(name);
    return "done";
  }

  async release(names) {
    for (const [name, row] of this.#records.rows) if (row.owner === this && (names ?? [name]).includes(name)) row.owner = undefined;
  }

  async list(space, { after = "", open }) {
    const names = [...this.#records.rows.keys()].filter((name) => name.startsWith(`${space}.`) && name > after).sort();
    const rows = names.map((name) => [name, this.#row(name)]).filter(([, row]) => row?.data && !(open && row.until !== undefined));
    const whose = ({ owner }) => (owner === undefined ? "free" : owner === this ? "mine" : "other");
    return { entries: rows.slice(0, PAGE).map(([name, row]) => ({ name, data: row.data, whose: whose(row) })), more: rows.length > PAGE };
  }

  async spend(space, { day: given, entry, amount, cap }) {
    const days = this.#records.days.get(space) ?? { latest: 0, counted: new Map() };
    this.#records.days.set(space, days);
    days.latest = Math.max(days.latest, Math.floor(this.#now() / DAY));
    const day = given ?? days.latest;
    const entries = days.counted.get(day) ?? new Map();
    days.counted.set(day, entries);
    const total = [...entries.values()].reduce((sum, usd) => sum + usd, 0n);
    const [usd, before] = [parts(amount), entries.get(entry) ?? 0n];
    if (cap !== undefined && usd > before && total - before + usd > parts(cap)) return { over: decimal(total), day };
    entries.set(entry, usd);
    days.latest = Math.max(days.latest, day);
    return { granted: day };
  }

  async close() {
    await this.release();
  }
}

function parts(text) {
  const [whole, rest = ""] = text.split(".");
  return BigInt(whole + rest.padEnd(28, "0"));
}

const decimal = (parts) => `${parts / 10n ** 28n}.${String(parts % 10n ** 28n).padStart(28, "0")}`;
