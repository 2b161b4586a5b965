// The core as the package's own code drives it, in Node and in a page: no part of the package's interface, so what wasm-bindgen made
// lies beside this file as `bindings.mjs`.
import { Client, StepKind, hostText, initSync, pageParams, pageTurn } from "./bindings.mjs";

const bytes = async () => (await fetch("/hopline/core.wasm")).arrayBuffer();

/** The file of the package that is tested. */
const installed = async () => {
  const [{ readFileSync }, { createRequire }] = await Promise.all([import("node:fs"), import("node:module")]);
  return readFileSync(createRequire(import.meta.url).resolve("hopline").replace("node.cjs", "core.wasm"));
};

initSync({ module: await (globalThis.process ? installed() : bytes()) });

export { Client as Core, StepKind, hostText, pageParams, pageTurn };
