// One copy for `import` and `require`.
export { refuse, relay, toNode } from "./backend.cjs";
