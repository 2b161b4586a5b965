// Globals that the core needs and that not every environment in Node has, such as jsdom of Jest: pack.mjs puts them in.
export { TextDecoder, TextEncoder } from "node:util";
