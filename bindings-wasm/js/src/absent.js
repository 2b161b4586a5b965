// The stores of other environments.
import { notOpened, refuse } from "./error.js";
import { METHODS } from "./stores.js";

/**
 * Gives a class the calls of a store, which fail. One can be made all the same: a module that a page shares with its server makes its store while
 * the server renders it.
 */
export function absent(store, why) {
  for (const name of METHODS) {
    const value = async () => {
      throw notOpened(refuse("store", "store", why));
    };
    Object.defineProperty(store.prototype, name, { value, writable: true, configurable: true });
  }
}
