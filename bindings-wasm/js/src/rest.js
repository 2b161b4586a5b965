// The part of the package that a page loads with the core.
export { Database } from "./indexed.js";
export * from "./run.js";
