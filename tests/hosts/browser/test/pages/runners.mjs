// The runners as Node has them; the import map says where their `hopline` is.
import * as hopline from "hopline";

import * as vectors from "./runner/vectors/all.mjs";
import * as suite from "./runner/lib/suite.mjs";
import { judge } from "./runner/vectors/judge.mjs";

await hopline.load();
Object.assign(globalThis, { hopline, vectors, judge, suite });
