// Bun puts the core into a program that it compiles, and says where it is.
import core from "./node.wasm" with { type: "file" };

import { load } from "./node.cjs";

load[Symbol.for("hopline.core")](() => new URL(core, import.meta.url));

// pack.mjs writes the names out.
export * from "./node.cjs";
