// A file of the package's source that needs nothing generated: what it exports, for tables of what it decides.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const source = (name) => import(pathToFileURL(join(process.env.HOPLINE_VECTORS, "../../bindings-wasm/js/src", name)));
