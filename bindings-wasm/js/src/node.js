// Bundled to node.cjs: the wasm file lies beside it.
import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { absent } from "./absent.js";
import { connections } from "./connections.js";
import { FROM, failed, isLoaded, start, startWith } from "./core.js";
import { readEnvironment } from "./environment.js";
import { failuresOf } from "./failures.js";
import { host } from "./host.js";
import * as run from "./run.js";
import { runtime } from "./runtime.js";
import { openPool } from "./pool.js";

/** Where the core may be: a function that returns its address or its bytes. A bundler may leave it behind, or know where it puts it. */
const places = [() => join(__dirname, "node.wasm")];

Object.assign(runtime, run);
readEnvironment();
/** The core is read and compiled when something needs it. */
host.load = () => {
  if (isLoaded()) return undefined;
  let fault;
  for (const place of places) {
    try {
      const found = place();
      return void start(ArrayBuffer.isView(found) ? found : readFileSync(found));
    } catch (cause) {
      fault ??= cause;
    }
  }
  const how = "leave the package out of the bundle (`--external:hopline`, in Next `serverExternalPackages`), copy `node.wasm` of the package beside it, or import `hopline/inline`, which has it within";
  throw failed(`could not be read, as where a bundler left the file out: ${how}`, fault);
};
// A path is one of a page's own server: here there is none, and the first call says so.
host.waits = (baseUrl) => /^[./]/.test(baseUrl);
host.context = () => AsyncLocalStorage.snapshot();
// The program's own context, which lives as long as it does: background work of a client must keep no request's context.
host.root = host.context();
host.warn = (text) => process.emitWarning(text, "HoplineWarning");
host.failures.before = failuresOf(globalThis.fetch);
host.connections = connections;
host.openPool = openPool;

/** Loads the core, or takes the one that is given. */
export async function load(core) {
  if (core === undefined) host.load();
  else await startWith(core);
}
// An entry that knows more is asked first.
Object.defineProperty(load, FROM, { value: (place) => places.unshift(place) });

/** IndexedDB is the browser's. */
export class IndexedDBStore {}
absent(IndexedDBStore, "there is no IndexedDB here; use a FolderStore");

export { FolderStore } from "./folder.js";
export * from "./everywhere.js";
