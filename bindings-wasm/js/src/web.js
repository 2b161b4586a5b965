// Bundled to web.mjs: the wasm file lies beside it.
import { initSync } from "../gen/hopline_wasm.js";
import { refuse } from "./error.js";

initSync({ module: await WebAssembly.compileStreaming(fetch(new URL("./core.wasm", import.meta.url))) });

/** Folders are Node's. */
export class FolderStore {
  constructor() {
    throw refuse("misuse", "store", "there are no folders here; use a store for browsers");
  }
}

export { Client as Core, StepKind, responseHeaders } from "../gen/hopline_wasm.js";
export { AgentClient } from "./client.js";
export { HoplineError } from "./error.js";
export { MemoryStore } from "./memory.js";
export { OpenSession } from "./session.js";
