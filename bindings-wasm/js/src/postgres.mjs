// One copy for `import` and `require`.
export { PostgresStore } from "./postgres.cjs";
