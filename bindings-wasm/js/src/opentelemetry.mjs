// One copy for `import` and `require`.
export { instrument, observePool } from "./opentelemetry.cjs";
