// The runner of the vectors as Node has it; the import map says where its `hopline` is.
import * as hopline from "hopline";

import * as vectors from "./runner/vectors/all.mjs";

await hopline.load();
Object.assign(globalThis, { hopline, vectors });
