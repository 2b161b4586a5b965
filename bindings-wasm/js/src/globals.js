// What the core needs and what not every environment that runs in Node has among its globals, such as jsdom of Jest: pack.mjs puts it in.
export { TextDecoder, TextEncoder } from "node:util";
