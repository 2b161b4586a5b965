// The core of this copy of the package: WebAssembly that is loaded once.
import { refuse } from "./error.js";
import { runtime } from "./runtime.js";

let loaded = false;

/** True once the core can be used. */
export const isLoaded = () => loaded;

/** Returns the name of an object's class, also of one of another realm, such as that of a test runner or of Next's edge on a developer's machine. */
const kindOf = (object) => Object.prototype.toString.call(object).slice(8, -1);
const MODULE = "WebAssembly.Module";

/** The mark of the core that belongs to this script, which pack.mjs writes into both. */
const mark = HOPLINE_CORE;

/** Makes the core of a module, or of its bytes where that may be done at once. One of another version would be used wrongly. */
export function start(given) {
  if (loaded) return;
  const module = kindOf(given) === MODULE ? given : new WebAssembly.Module(given);
  const [found] = WebAssembly.Module.customSections(module, "hopline");
  if (!found || new TextDecoder().decode(found) !== mark) throw new TypeError("the core is one of another version of the package, or another file");
  if (!(module instanceof WebAssembly.Module)) Object.setPrototypeOf(module, WebAssembly.Module.prototype);
  runtime.initSync({ module });
  loaded = true;
}

/** The key of the function by which another entry of the package says where the core is: a property of `load`. */
export const FROM = Symbol.for("hopline.core");

/** The error of a core that can't be loaded. Nothing was sent. */
export const failed = (what, cause) => refuse("unavailable", "load", `the core ${what}; nothing was sent`, { cause });

/** Starts the core that a caller gives: a module, its bytes, or a response with them. */
export async function startWith(given) {
  const source = await given;
  if (loaded) return;
  const kind = kindOf(source);
  const isBytes = kind.endsWith("ArrayBuffer") || ArrayBuffer.isView(source);
  if (kind !== MODULE && !isBytes && typeof source?.arrayBuffer !== "function") {
    throw refuse("invalid", "load", "`core` must be a WebAssembly.Module, the bytes of `hopline/core.wasm`, or a Response with them", { field: "core" });
  }
  if (source.ok === false) throw failed(`could not be fetched (HTTP ${source.status})`);
  try {
    start(kind === MODULE ? source : await WebAssembly.compile(isBytes ? source : await source.arrayBuffer()));
  } catch (cause) {
    throw failed("that was given is not the one of this version of the package", cause);
  }
}
