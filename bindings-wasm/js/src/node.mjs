// One copy of the package for `import` and `require`.
import { load } from "./node.cjs";

// A bundler that knows this expression puts the file where it is found.
load[Symbol.for("hopline.core")](() => new URL("./node.wasm", import.meta.url));

// pack.mjs writes the names out.
export * from "./node.cjs";
