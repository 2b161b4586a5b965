import { AgentClient, IndexedDBStore } from "./hopline/web.mjs";

import { usd } from "./amount.js";
import { Notes } from "./notes.js";
import { what } from "./order.js";

/** How often what may change by itself is read again, while somebody looks. */
const FRESH_MS = 60_000;
const LOGGED = 100;
/** A page that was just left holds its records for a moment: they are looked for again this long after the beginning. */
const LEFT_MS = [1000, 5000];

/** The state of the page, and its actions. Each change is told by the event `change`. */
export class Account extends EventTarget {
  /** By id: the sessions that are remembered. */
  sessions = new Map();
  /** The operations in doubt. */
  doubts = [];
  /** Records that can't be used. */
  unusable = [];
  /** By name of a doubt: what came of the last that was done about it. */
  said = new Map();
  products = { items: [], loading: true };
  balance = {};
  activity = [];
  #agent;
  /** By intent: what waits for a purchase until its session can be used. */
  #buying = new Map();

  constructor(account) {
    super();
    this.notes = new Notes(account);
    // No key: the page's own server has it. The account is named, so that records of another one are left alone.
    this.#agent = new AgentClient({ baseUrl: "/api", account, store: new IndexedDBStore("hopline-dashboard") });
    this.#listen();
  }

  /** Reads everything. An operation that was under way when the page was closed is shown, and not sent: that is for a person to say. */
  async start() {
    if (await this.remembered()) for (const { intent, reason } of this.unusable) this.log("bad", `The record of ${intent ?? "a purchase"} can't be used: ${reason.replaceAll("_", " ")}`);
    for (const wait of LEFT_MS) setTimeout(() => this.remembered(), wait);
    await this.refresh();
    setInterval(() => document.visibilityState === "visible" && this.refresh(), FRESH_MS);
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.refresh());
  }

  async refresh() {
    if (!navigator.onLine) return;
    await Promise.all([this.loadProducts(), this.loadBalance(), this.remembered()]);
    for (const { session_id, phase } of this.sessions.values()) if (phase !== "ended") this.follow(session_id);
  }

  /** Reads the store's entries, whichever tab has them. Says whether the store could be read. */
  async remembered() {
    let saved;
    try {
      saved = await this.#agent.saved();
    } catch (error) {
      this.log("bad", error.message);
      return false;
    }
    this.restored = true;
    this.unusable = saved.filter(({ holds }) => holds === "refused");
    // Its record changes with each attempt, and its name does not.
    const named = saved.map((one) => ({ ...one, name: one.intent ?? `${one.operation} ${one.session_id}` }));
    const isAsked = ({ name, holds }) => holds === "under_way" && this.said.get(name)?.asking;
    // A purchase that was just accepted may not be stored as such yet.
    const accepted = new Set([...this.sessions.values()].map(({ intent }) => intent).filter((intent) => this.#buying.has(intent)));
    const isDoubt = (one) => (one.holds === "in_doubt" && !accepted.has(one.intent)) || one.holds === "in_doubt_for_good";
    this.doubts = named.filter((one) => isDoubt(one) || isAsked(one));
    // A session that was terminated here is no session any more, but its purchase is remembered.
    const bought = ({ holds, operation }) => holds === "accepted" && operation === "create_session";
    const held = saved.filter((one) => one.session_id && (one.holds === "session" || bought(one)));
    const isHeld = (id) => held.some(({ session_id }) => session_id === id);
    for (const [id, { intent }] of this.sessions) if (!isHeld(id) && !accepted.has(intent)) this.sessions.delete(id);
    for (const { session_id, record, status, intent, holds } of held) {
      this.#session(session_id, { record, intent, status });
      if (holds === "accepted") this.#session(session_id, { phase: "ended" });
      else if (!this.sessions.get(session_id).data) this.follow(session_id);
    }
    this.#changed();
    return true;
  }

  async loadProducts() {
    this.products.loading = true;
    this.#changed();
    try {
      const items = [];
      for await (const product of this.#agent.walkProducts({ in_stock: false, limit: 100 })) items.push(product);
      this.products = { items, at: Date.now() };
    } catch (error) {
      this.products = { ...this.products, loading: false, error };
    }
    this.#changed();
  }

  async loadBalance() {
    try {
      const { balance, currency } = await this.#agent.getBalance();
      this.balance = { balance, currency, at: Date.now() };
      // The contract does not document the balance.
      if (balance !== undefined) this.notes.balance(String(balance));
    } catch (error) {
      this.balance = { ...this.balance, error };
    }
    this.#changed();
  }

  /** The price of a quantity of a product: the core computes it, and nothing is sent. */
  quote(product, quantity) {
    return this.#agent.quote(product, quantity);
  }

  /**
   * Buys what was quoted, at no higher price: the account may have read a newer one in another tab. Called again with the same
   * order, it joins the purchase that is under way.
   */
  async buy({ intent, product, quantity, quote, protocol }) {
    const { product_no, type: session_type, name } = product;
    this.notes.note(intent, {
      product_no,
      product: name,
      quantity: `${quantity} ${what(product, quantity)}`,
      quoted: String(quote.total),
      currency: quote.currency,
    });
    const wanted = { session_type, product_no, quantity, protocol };
    try {
      this.#read(await this.#wait(intent, this.#agent.openSession(wanted, { intent, maxUnitPrice: quote.unit_price })));
    } finally {
      await Promise.all([this.remembered(), this.loadBalance()]);
    }
  }

  /** Waits for a purchase: nothing else waits for its session meanwhile, or changes it. */
  async #wait(intent, bought) {
    if (intent === undefined) return bought;
    this.#buying.set(intent, bought);
    try {
      return await bought;
    } finally {
      this.#buying.delete(intent);
    }
  }

  /** Asks about what is in doubt, with the key that it was sent with: it is done at most once, whatever the answer. */
  async askAgain({ name, record, operation, intent }) {
    this.said.set(name, { asking: true });
    this.#changed();
    try {
      const answer = await this.#wait(intent, this.#agent.resume(record));
      if (operation === "renew_session" && intent) this.#renewed(intent, answer);
      this.said.delete(name);
    } catch (error) {
      this.said.set(name, { error });
      this.log("bad", error.message);
    }
    await Promise.all([this.remembered(), this.loadBalance()]);
  }

  /** Closes a doubt by hand. The call is refused where the record has changed since it was shown, as by another tab. */
  async settle({ name, record, intent }, happened) {
    try {
      // A person who says so within the hour was told that the request may still arrive.
      await this.#agent.settle(record, happened ? "happened" : "not_happened", { early: !happened });
      if (intent && this.notes.of(intent)) this.notes.note(intent, { settled: happened });
      this.log("quiet", `${this.nameOf(intent)}: you said that it ${happened ? "happened" : "did not happen"}`);
    } catch (error) {
      this.said.set(name, { error });
      this.log("bad", error.message);
    }
    await this.remembered();
  }

  /** Reads a session, and waits for it if it is on its way. */
  async follow(session_id) {
    const known = this.sessions.get(session_id);
    if (!known || known.following || this.#buying.has(known.intent)) return;
    known.following = true;
    try {
      this.#read(await this.#agent.waitSession(session_id));
    } catch (error) {
      this.#learn(session_id, { error });
    }
    known.following = false;
    this.#changed();
  }

  /** Does something to a session, and reads it again. A failure is shown with it. */
  async change(session_id, doing, done, work) {
    if (this.sessions.get(session_id)?.doing) return;
    this.#learn(session_id, { doing, error: undefined });
    this.#changed();
    let error;
    try {
      // Its purchase may still be at work on it, though the session is there.
      await this.#buying.get(this.sessions.get(session_id)?.intent)?.catch(() => {});
      await work(this.#agent);
      this.log("good", `${this.nameOfSession(session_id)}: ${done}`);
    } catch (caught) {
      error = caught;
      this.log("bad", caught.message);
    }
    await Promise.all([this.remembered(), this.loadBalance()]);
    this.#learn(session_id, { doing: undefined });
    if (this.sessions.get(session_id)?.phase !== "ended") await this.follow(session_id);
    if (error) this.#learn(session_id, { error });
    this.#changed();
  }

  rotate(session_id) {
    return this.change(session_id, "rotating", "rotated", (agent) => agent.rotateSession({ session_id, reason: "manual" }));
  }

  terminate(session_id) {
    return this.change(session_id, "terminating", "terminated", (agent) => agent.terminateSession({ session_id }));
  }

  renew(session_id, duration, intent) {
    return this.change(session_id, "renewing", "renewed", async (agent) => {
      this.notes.note(intent, {
        product: `Renewal of ${this.nameOfSession(session_id)}`,
        quantity: `${duration} ${duration === 1 ? "term" : "terms"}`,
        session_id,
      });
      this.#renewed(intent, await agent.renewSession({ session_id, duration }, { intent }));
    });
  }

  /** The cost of a renewal, where its answer states one. */
  #renewed(intent, answer) {
    const charge = answer?.estimated_charge_usd;
    this.notes.note(intent, { accepted: true, ...(charge != null && { charged: String(charge) }) });
  }

  /** The login of a session: read when it is asked for, and kept nowhere. */
  async credentials(session_id) {
    const { proxy } = await this.#agent.getSession({ session_id, include_credentials: true });
    return proxy;
  }

  /** Stops remembering a session that is over. Another tab may still have it. */
  async forget({ record, session_id }) {
    let error;
    try {
      // The page first lets go of its own session, which changes the record.
      if (await this.#agent.releaseSession(session_id)) await this.remembered();
      await this.#agent.forget(this.sessions.get(session_id)?.record ?? record);
    } catch (caught) {
      error = caught;
      this.log("bad", caught.message);
    }
    await this.remembered();
    if (error) this.#learn(session_id, { error });
    this.#changed();
  }

  nameOf(intent) {
    const known = this.notes.of(intent);
    return known ? `${known.product}, ${known.quantity}` : intent;
  }

  nameOfSession(session_id) {
    return this.notes.ofSession(session_id)?.product ?? session_id;
  }

  log(tone, text) {
    this.activity = [{ n: (this.activity[0]?.n ?? 0) + 1, at: Date.now(), tone, text }, ...this.activity].slice(0, LOGGED);
    this.#changed();
  }

  async #listen() {
    for await (const event of this.#agent.events()) this.#tell(event);
  }

  #tell(event) {
    const { session_id, intent, status, phase } = event;
    const name = this.nameOf(intent) ?? (session_id && this.nameOfSession(session_id)) ?? event.operation;
    switch (event.event) {
      case "accepted": {
        const charged = event.estimated_charge_usd;
        if (intent) this.notes.note(intent, { session_id, accepted: true, ...(charged && { charged }) });
        this.#session(session_id, { intent, phase: "pending" });
        this.remembered();
        this.loadBalance();
        this.log("good", `${name}: accepted${charged ? `, about ${usd(charged)}` : ""}`);
        break;
      }
      case "status": {
        const before = this.sessions.get(session_id)?.status;
        this.#learn(session_id, { status, phase });
        // A state from before the page was loaded is no news.
        if (before !== status) this.log(phase === "ready" ? "good" : "quiet", `${this.nameOfSession(session_id)}: ${status}`);
        break;
      }
      case "repeating": {
        const seconds = Math.round(event.delay_ms / 1000);
        this.log("warn", `${name}: ${event.because.what}; asking again ${seconds > 0 ? `in ${seconds} s` : "at once"}`);
        break;
      }
      case "in_doubt":
        this.log("warn", `${name}: in doubt`);
        break;
      case "asking_time":
        this.log("quiet", `${name}: asking the service for its time first`);
        break;
      case "store_failed":
        this.log("bad", "this browser could not keep a record");
        break;
    }
    this.dispatchEvent(new CustomEvent("told", { detail: event }));
  }

  #read({ session_id, phase, session }) {
    this.#learn(session_id, { phase, status: session.status, data: session, error: undefined });
  }

  /** More of a session that is shown. */
  #learn(session_id, more) {
    const known = this.sessions.get(session_id);
    if (known) Object.assign(known, more);
  }

  /** Shows a session. */
  #session(session_id, more) {
    this.sessions.set(session_id, Object.assign(this.sessions.get(session_id) ?? { session_id }, more));
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}
