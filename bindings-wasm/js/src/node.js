// Bundled to node.cjs: the wasm file lies beside it.
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { initSync } from "../gen/hopline_wasm.js";
import { connections } from "./connections.js";
import { failuresOf } from "./failures.js";
import { host } from "./host.js";
import { refuse } from "./error.js";
import { openPool } from "./pool.js";

initSync({ module: readFileSync(join(__dirname, "node.wasm")) });

/** By API: which option comes from which variable. */
const VARIABLES = {
  agent: { apiKey: "HOPLINE_API_KEY", baseUrl: "HOPLINE_BASE_URL" },
  reseller: { username: "HOPLINE_USERNAME", password: "HOPLINE_PASSWORD", baseUrl: "HOPLINE_BACKEND_URL" },
};

/** All or nothing: a given token must not be renewed with another login. */
const LOGIN = ["username", "password", "token"];

host.environment = (api, given) => {
  // A file or a shell may have left a line break behind it.
  const trimmed = (option, text) => (option === "password" ? text.replace(/^[\r\n]+|[\r\n]+$/g, "") : text.trim());
  const hasLogin = LOGIN.some((option) => option in given);
  // A blank one is refused by its name: a key that is lost on its way must not make a client without one.
  const found = Object.entries(VARIABLES[api]).filter(([option, name]) => name in process.env && !(hasLogin && LOGIN.includes(option)));
  return Object.fromEntries(found.map(([option, name]) => [option, trimmed(option, process.env[name])]));
};
host.variable = (api, option) => VARIABLES[api][option];
host.elsewhere = (api) => `, or set ${VARIABLES[api].baseUrl}`;
host.unauthorized = (api, { apiKey, username, token }) => {
  if (apiKey ?? username ?? token) return "";
  const [missing, options] = api === "agent" ? ["key", "`apiKey`"] : ["login", "`username` and `password`"];
  const variables = Object.entries(VARIABLES[api]).flatMap(([option, name]) => (option === "baseUrl" ? [] : [name]));
  return `; this client has no ${missing}: give ${options}, or set ${variables.join(" and ")}`;
};
host.context = () => {
  // Node 20.0 to 20.4 have no snapshots.
  if (AsyncLocalStorage.snapshot) return AsyncLocalStorage.snapshot();
  const context = new AsyncResource("hopline");
  return (work) => context.runInAsyncScope(work);
};
// The program's own context, which lives as long as it does: background work of a client must keep no request's context.
host.root = host.context();
host.warn = (text) => process.emitWarning(text, "HoplineWarning");
host.failures.before = failuresOf(globalThis.fetch);
host.connections = connections;
host.openPool = openPool;

/** The core is loaded already. */
export async function load() {}

/** IndexedDB is the browser's. */
export class IndexedDBStore {
  constructor() {
    throw refuse("misuse", "store", "there is no IndexedDB here; use a FolderStore");
  }
}

export { FolderStore } from "./folder.js";
export * from "./everywhere.js";
