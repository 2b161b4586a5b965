// One copy of the package for `import` and `require`.
import "./inline-node.cjs";

export * from "./node.mjs";
