// The store of a case: what a store would answer, so that a script names only what it is about.
import { fail } from "./matching.mjs";

const DAY = 24 * 3600 * 1000;
const PAGE = 500;

/** Money as a whole number of parts of 28 decimal places. */
function parts(text) {
  const [whole, rest = ""] = text.split(".");
  return BigInt(whole + rest.padEnd(28, "0"));
}

const decimal = (parts) => `${parts / 10n ** 28n}.${String(parts % 10n ** 28n).padStart(28, "0")}`.replace(/\.?0+$/, "");

const MEMBERS = {
  claim: (names, most) => ({ names, most }),
  put: (name, data, { new: isNew, keepFor, release }) => ({ name, data, isNew, keepFor, letsGo: release }),
  delete: (name) => ({ name }),
  release: (names) => ({ names }),
  list: (space, options) => ({ space, ...options }),
  spend: (space, what) => ({ space, ...what }),
};

/** The call of the store that the core asks for. */
export const callOf = ({ call: [kind, ...given] }) => ({ kind, ...MEMBERS[kind](...given) });

export class Store {
  #kept = new Map();
  /** The puts and deletes that were not confirmed: each may be on the disk. */
  #unsure = new Map();
  #day = 0;
  #entries = new Map();

  /** The store's answers, as a function of the core. */
  call(call, unix) {
    for (const [name, { owned, until }] of this.#kept) if (!owned && until !== undefined && until <= unix) this.#kept.delete(name);
    const { name } = call;
    switch (call.kind) {
      case "claim": {
        const found = call.names.map((name) => this.#kept.get(name));
        for (const kept of found) if (kept) kept.owned = true;
        return { claimed: [call.names, ...packed(found.map((kept) => kept?.data))] };
      }
      case "put": {
        this.#unsure.delete(name);
        const before = this.#kept.get(name);
        if (call.isNew && before && !before.owned) return { done: ["lost"] };
        this.#kept.set(name, { data: call.data, until: call.keepFor === undefined ? undefined : unix + call.keepFor, owned: !call.letsGo });
        return { done: ["done"] };
      }
      case "delete":
        this.#unsure.delete(name);
        this.#kept.delete(name);
        return { done: ["done"] };
      case "release":
        this.takeAway(call.names ?? [...this.#kept.keys()]);
        return { done: ["done"] };
      case "list": {
        const isShown = ([name, { until }]) => name.startsWith(`${call.space}.`) && name > (call.after ?? "") && !(call.open && until !== undefined);
        const found = [...this.#kept].filter(isShown).sort(([one], [other]) => (one < other ? -1 : 1));
        const page = found.slice(0, PAGE);
        const whose = page.map(([, { owned }]) => (owned ? "mine" : "free"));
        return { listed: [page.map(([name]) => name), ...packed(page.map(([, { data }]) => data)), whose, found.length > PAGE] };
      }
      case "spend":
        return this.#spend(call, unix);
    }
  }

  #spend({ day: given, entry, amount, cap }, unix) {
    const today = this.today(unix);
    const day = given ?? today;
    const of = `${day} ${entry}`;
    const others = [...this.#entries].filter(([other]) => other.startsWith(`${day} `) && other !== of);
    const total = others.reduce((sum, [, usd]) => sum + usd, 0n);
    const [usd, before] = [parts(amount), this.#entries.get(of)];
    const grows = before === undefined || usd > before;
    if (grows && cap !== undefined && total + usd > parts(cap)) return { over: [day, decimal(total)] };
    this.#entries.set(of, usd);
    return { granted: [day] };
  }

  /** The day by a clock that never goes back. */
  today(unix) {
    this.#day = Math.max(this.#day, Math.floor(unix / DAY));
    return this.#day;
  }

  /** A call was made, and nobody knows yet what came of it. */
  doubt({ kind, name, data }) {
    if (kind === "put" || kind === "delete") this.#unsure.set(name, data);
  }

  /** This client has these names no more. */
  takeAway(names) {
    for (const name of names) if (this.#kept.has(name)) this.#kept.get(name).owned = false;
  }

  /** The process dies: what it had is free, and these writes are on the disk though nobody confirmed them. */
  crash(also) {
    this.takeAway([...this.#kept.keys()]);
    for (const name of also) {
      if (!this.#unsure.has(name)) fail(`every write of \`${name}\` was confirmed`);
      const data = this.#unsure.get(name);
      if (data === undefined) this.#kept.delete(name);
      else this.#kept.set(name, { data, owned: false });
    }
    this.#unsure.clear();
  }

  data(name) {
    return this.#kept.get(name)?.data;
  }

  plant(name, data) {
    this.#kept.set(name, { owned: false, ...this.#kept.get(name), data });
  }
}

/** Data of several names as it crosses: the length of each, and all of it as one piece. */
function packed(all) {
  const lengths = Int32Array.from(all, (data) => data?.length ?? -1);
  return [lengths, Uint8Array.from(all.flatMap((data) => [...(data ?? [])]))];
}
