import { misfit, pageParams, pageTurn } from "../gen/hopline_wasm.js";
import { asked, read, refuse } from "./error.js";

/** A walk through a list, page by page. hopline.d.ts documents it. */
export class Walk {
  #list;
  #fetch;
  #position;
  #end;

  /** `fetch` gives the result of a page with those parameters. */
  constructor(list, fetch, { position, maxPages } = {}) {
    const { operation } = list;
    if (maxPages !== undefined && !(Number.isInteger(maxPages) && maxPages > 0 && maxPages < 2 ** 32)) {
      throw refuse("invalid", operation, "`maxPages` must be a whole number of at least 1", { field: "maxPages" });
    }
    let begin = { operation };
    if (position !== undefined) begin = parsed(position);
    if (begin?.operation !== operation) throw refuse("invalid", operation, "`position` is not one of this list", { field: "position" });
    this.#list = list;
    this.#fetch = fetch;
    this.#position = maxPages === undefined && position !== undefined ? position : JSON.stringify({ ...begin, max_pages: maxPages });
  }

  /** Vue's reactive copies have no private members. */
  get __v_skip() {
    return true;
  }

  get position() {
    return this.#position;
  }

  get end() {
    return this.#end;
  }

  async *pages() {
    while (!this.#end) {
      const { page, turn } = await this.#read();
      this.#turn(turn);
      yield page;
    }
  }

  async *[Symbol.asyncIterator]() {
    while (!this.#end) {
      const { items, turn } = await this.#read();
      for (const [n, item] of items.entries()) {
        // A position is never beyond what was handed out.
        if (n === items.length - 1) this.#turn(turn);
        yield item;
      }
      if (items.length === 0) this.#turn(turn);
    }
  }

  async #read() {
    const { operation, items: member } = this.#list;
    const position = this.#position;
    const { data, facts, raw } = await this.#fetch((params) => asked(pageParams, position, params));
    const items = data?.[member];
    if (!Array.isArray(items)) throw read(misfit(operation, JSON.stringify(facts), raw, member));
    return { page: data, items, turn: JSON.parse(asked(pageTurn, position, JSON.stringify(facts))) };
  }

  #turn({ position, end }) {
    this.#position = position && JSON.stringify(position);
    this.#end = end;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
