import { ask, isHere } from "./ask.js";
import { asked } from "./error.js";
import { runtime } from "./runtime.js";

/** The reason of a walk that ends at a page with repeated items. */
const REPEATED = "repeated_page";

/** A walk through a list, page by page. hopline.d.ts documents it. */
export class Walk {
  #list;
  #fetch;
  #position;
  #end;

  /** If the core is not loaded yet, the walk begins with its first page: until then this is its question. */
  #begin;

  /** `fetch` returns the result of a page with those parameters. */
  constructor(list, fetch, { position, maxPages } = {}) {
    this.#list = list;
    this.#fetch = fetch;
    this.#position = position;
    this.#begin = () => {
      this.#position = ask("walk", { operation: list.operation, position, max_pages: maxPages }).position;
      this.#begin = undefined;
    };
    if (isHere()) this.#begin();
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
      if (turn.end !== REPEATED) yield page;
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
    let position;
    const { page, facts } = await this.#fetch((params) => {
      this.#begin?.();
      position = this.#position;
      return asked(() => runtime.hostText("page_params", position, params));
    });
    const turn = JSON.parse(asked(() => runtime.hostText("page_turn", position, facts)));
    // Repeated items are not given again.
    return { page, items: turn.end === REPEATED ? [] : page[this.#list.items], turn };
  }

  #turn({ position, end }) {
    this.#position = position;
    this.#end = end;
  }
}
