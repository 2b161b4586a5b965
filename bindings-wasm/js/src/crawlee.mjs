// One copy for `import` and `require`.
export { HoplineHttpClient } from "./crawlee.cjs";
