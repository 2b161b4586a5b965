// The package as plain files, by a relative address.
import * as hopline from "./hopline/web.mjs";

globalThis.hopline = hopline;
globalThis.worker = new Worker("/worker.mjs", { type: "module" });
