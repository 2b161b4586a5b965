// One copy for `import` and `require`.
export { PoolContexts } from "./playwright.cjs";
