// The core as the package's own code drives it, in Node and in a page: no part of the package's interface, so what wasm-bindgen made
// lies beside this file, of what a page loads and of what Node loads.
const isNode = globalThis.process !== undefined;
const { Client, StepKind, hostText, initSync, pageParams, pageTurn } = await import(isNode ? "./bindings-node.mjs" : "./bindings.mjs");

const bytes = async () => (await fetch("/hopline/core.wasm")).arrayBuffer();

/** The file of the package that is tested. */
const installed = async () => {
  const [{ readFileSync }, { createRequire }] = await Promise.all([import("node:fs"), import("node:module")]);
  return readFileSync(createRequire(import.meta.url).resolve("hopline").replace("node.cjs", "node.wasm"));
};

initSync({ module: await (isNode ? installed() : bytes()) });

export { Client as Core, StepKind, hostText, pageParams, pageTurn };
