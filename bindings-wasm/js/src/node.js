// Bundled to node.cjs: the wasm file lies beside it.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { initSync } from "../gen/hopline_wasm.js";
import { host } from "./host.js";
import { refuse } from "./error.js";

initSync({ module: readFileSync(join(__dirname, "core.wasm")) });

/** What Node's own `fetch` says when it never had a connection: no byte was sent. */
const BEFORE = { ENOTFOUND: "dns", EAI_AGAIN: "dns", ECONNREFUSED: "connect" };

host.environment = () => ({
  apiKey: process.env.HOPLINE_API_KEY || undefined,
  baseUrl: process.env.HOPLINE_BASE_URL || undefined,
});
host.failures.before = (error) => {
  const kind = BEFORE[error?.cause?.code];
  return kind && { kind, sent: "never" };
};

/** It is here already. */
export async function load() {}

/** IndexedDB is the browser's. */
export class IndexedDBStore {
  constructor() {
    throw refuse("misuse", "store", "there is no IndexedDB here; use a FolderStore");
  }
}

export { Client as Core, StepKind, misfit, pageParams, pageTurn, quote, responseHeaders } from "../gen/hopline_wasm.js";
export { AgentClient } from "./client.js";
export { HoplineError } from "./error.js";
export { FolderStore } from "./folder.js";
export { MemoryStore } from "./memory.js";
export { Walk } from "./pages.js";
export { ProxySettings } from "./proxy.js";
export { OpenSession } from "./session.js";
export { sessionEvent } from "./telemetry.js";
export { operations } from "../gen/operations.js";
