import { resellerOperations, resellerWalks } from "../gen/operations.js";
import { now } from "./ask.js";
import { Client, equip } from "./client.js";
import { Engine } from "./engine.js";
import { refuse } from "./error.js";
import { encode, object } from "./values.js";

/** The client of one reseller. hopline.d.ts documents it. */
const reseller = /* @__PURE__ */ equip(
  class ResellerClient extends Client {
    #engine;

    constructor(options) {
      const engine = new Engine("reseller", options);
      super(engine, (_, { data, facts: { order_no }, phase }) => ({ order_no, phase, order: data }));
      this.#engine = engine;
    }

    get token() {
      return this.#engine.peek((core) => core.token());
    }

    async placeOrder(params, options) {
      return this.wait("place_order", params, options);
    }

    async waitOrder(order_no, options) {
      return this.wait("wait_order", { order_no }, options);
    }
  },
  resellerOperations,
  resellerWalks,
);

// A variable of the name of the class would make a bundler rename the class.
export { reseller as ResellerClient };

/** Returns true if a product is shared static. */
export function isShared(product) {
  object("is_shared", "product", product);
  return now("is_shared", "is_shared", encode("is_shared", "product", product)) === "true";
}

/** Returns true if an order of a product must name a project. */
export function needsProjectId(product) {
  return isShared(product);
}

/** The first and the last address of a range. */
export function parseIpRange(text) {
  if (typeof text !== "string") throw refuse("invalid", "parse_ip_range", "`text` must be a string", { field: "text" });
  return JSON.parse(now("parse_ip_range", "ip_range", text));
}
