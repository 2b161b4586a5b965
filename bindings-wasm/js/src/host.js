import { refuse } from "./error.js";

/**
 * The differences between environments: the defaults and their variables, the further place of a base URL, the addition to a refused request without a key, the
 * failures of `fetch` that sent nothing and their additions, the maker of a connection of its own for each write over a `fetch`, the
 * loading of the core (a promise, or `undefined` if it is loaded; it may throw), whether a client waits for its first call before it is made, since
 * something is missing here, a function that runs work in the present async context, and one that
 * runs it in the program's own, the way to warn, the base of an address without a host, and the opening of pools.
 */
export const host = {
  environment: () => ({}),
  variable: () => undefined,
  elsewhere: () => "",
  unauthorized: () => "",
  failures: {},
  connections: () => undefined,
  load: () => undefined,
  waits: () => false,
  context: () => (work) => work(),
  root: (work) => work(),
  warn: (text) => console.warn(text),
  resolve: (baseUrl) => baseUrl,
  openPool() {
    throw refuse("misuse", "open_pool", "a page has no pools; open one in Node, behind your own server");
  },
};
