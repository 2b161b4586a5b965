// Bundled to web.mjs: the wasm file lies beside it.
import { absent } from "./absent.js";
import { FROM, startWith } from "./core.js";
import { host } from "./host.js";
import * as core from "./load.js";

host.load = core.load;
host.failures.more = () =>
  globalThis.navigator?.onLine === false
    ? "; this browser is offline"
    : "; a browser does not say why: the network, a service that does not allow this page (CORS), or the page's own `connect-src`";
// So many connections to a host has a page over HTTP/1.1; what else it fetches from there, the browser keeps waiting.
host.environment = () => ({ maxInFlight: 6 });
// A path is one of the page's own server. Anything else must name its scheme, so that a forgotten one is heard of.
host.resolve = (baseUrl) => {
  try {
    return /^[./]/.test(baseUrl) ? new URL(baseUrl, place()).href : baseUrl;
  } catch {
    return baseUrl;
  }
};

/** Where this page or worker is: of a page, where its `<base>` says; of a worker made of a blob, whose address is no place, its origin. */
function place() {
  const { document, location, origin } = globalThis;
  return document?.baseURI ?? (location.protocol === "blob:" ? origin : location.href);
}

/** Loads the core, or takes the one that is given. */
export async function load(given) {
  if (given === undefined) return core.load();
  await core.loadRest();
  return startWith(given);
}
// An entry that has the core within says so.
Object.defineProperty(load, FROM, { value: core.loadFrom });

/** Folders are Node's. */
export class FolderStore {}
absent(FolderStore, "there are no folders here; use an IndexedDBStore");

export { IndexedDBStore } from "./page-store.js";
export * from "./everywhere.js";
