// The source of a program, for any bundler.
import * as hopline from "hopline";

globalThis.hopline = hopline;
globalThis.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
