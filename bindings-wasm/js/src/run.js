// The part of the package that is loaded with the core.
export { Client as Core, hostText, initSync } from "../gen/hopline_wasm.js";
export { drive } from "./driver.js";
