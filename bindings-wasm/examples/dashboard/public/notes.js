/*
 * The page's notes for people, beside the client's own records: what a purchase was of and what it cost. Nothing
 * depends on it. The notes hold no secret.
 */
const KEPT = 200;

export class Notes {
  #name;
  /** By intent. */
  purchases = {};
  balances = [];

  constructor(account) {
    this.#name = `hopline-dashboard/${account}`;
    this.#reload();
  }

  /** The note of a purchase, with more members. */
  note(intent, more) {
    this.#reload();
    this.purchases[intent] = { at: Date.now(), ...this.purchases[intent], ...more };
    const oldest = Object.entries(this.purchases).sort(([, a], [, b]) => a.at - b.at);
    for (const [name] of oldest.slice(0, -KEPT)) delete this.purchases[name];
    this.#keep();
  }

  balance(balance) {
    this.#reload();
    if (this.balances.at(-1)?.balance !== balance) this.balances = [...this.balances, { at: Date.now(), balance }].slice(-KEPT);
    this.#keep();
  }

  of(intent) {
    return this.purchases[intent];
  }

  ofSession(session_id) {
    return Object.values(this.purchases).find((purchase) => purchase.session_id === session_id && purchase.product_no);
  }

  /** Another tab may have written. */
  #reload() {
    try {
      Object.assign(this, JSON.parse(localStorage.getItem(this.#name)));
    } catch {
      // A page that may keep nothing, or a note that is none: what there is stays.
    }
  }

  #keep() {
    try {
      localStorage.setItem(this.#name, JSON.stringify({ purchases: this.purchases, balances: this.balances }));
    } catch {
      // The note lasts as long as the page.
    }
  }
}
