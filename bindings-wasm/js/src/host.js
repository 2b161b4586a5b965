import { refuse } from "./error.js";

/**
 * What differs from place to place: the defaults of the environment, where else than among the options a base URL may be,
 * what to say of a request that had no key and was refused, which failures of its `fetch` sent nothing and what else is to be said of
 * them, what makes a connection of its own for each write over a `fetch`, how the core is loaded (a promise, or nothing where it is here), a function that runs work in the async context of now, and one that runs it in the program's own, how a warning is told, what an address without a host belongs to,
 * and how a pool is opened.
 */
export const host = {
  environment: () => ({}),
  elsewhere: () => "",
  unauthorized: () => "",
  failures: {},
  connections: () => undefined,
  load: () => undefined,
  context: () => (work) => work(),
  root: (work) => work(),
  warn: (text) => console.warn(text),
  resolve: (baseUrl) => baseUrl,
  openPool() {
    throw refuse("misuse", "open_pool", "a page has no pools; open one in Node, behind your own server");
  },
};
