// Bundled to edge.mjs, for Workers and edge routes: the core is a module that the platform has compiled.
import core from "./core.wasm?module";

import { absent } from "./absent.js";
import { failed, isLoaded, start, startWith } from "./core.js";
import { readEnvironment } from "./environment.js";
import { refuse } from "./error.js";
import { host } from "./host.js";
import * as run from "./run.js";
import { runtime } from "./runtime.js";

Object.assign(runtime, run);
readEnvironment();
host.load = () => {
  if (isLoaded()) return undefined;
  try {
    return void start(core);
  } catch (cause) {
    throw failed("is not what was packed: the bundler must make a WebAssembly.Module of `core.wasm?module`, or else give `load` one", cause);
  }
};
// Outside of a request there is no entropy, and nothing may begin.
host.waits = () => true;
// Next's edge refuses to be asked for a module of Node's.
const AsyncLocalStorage = globalThis.AsyncLocalStorage ?? globalThis.process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
if (AsyncLocalStorage?.snapshot) {
  host.context = () => AsyncLocalStorage.snapshot();
  host.root = host.context();
}
host.openPool = () => {
  throw refuse("misuse", "open_pool", "there are no pools in Workers and edge routes; open one in Node");
};

/** Loads the core, or takes the one that is given. */
export async function load(core) {
  if (core === undefined) host.load();
  else await startWith(core);
}

const WHERE = "in Workers and edge routes; keep records by a store of your own, or where your server runs on Node";
/** IndexedDB is the browser's. */
export class IndexedDBStore {}
absent(IndexedDBStore, `there is no IndexedDB ${WHERE}`);
/** Folders are Node's. */
export class FolderStore {}
absent(FolderStore, `there are no folders ${WHERE}`);

export * from "./everywhere.js";
