import { failed, isLoaded, start } from "./core.js";
import { runtime } from "./runtime.js";

/** Bundlers look for this very expression, and replace it with the file's address. */
const core = () => new URL("./core.wasm", import.meta.url);
/** The function that gets the bytes of the core, where another entry has them. */
let bytes;
let loading;

/** Loads the core: a promise, or `undefined` if it is loaded already. The next call tries a failed load again. */
export function load() {
  if (isLoaded()) return undefined;
  loading ??= begin().finally(() => (loading = undefined));
  return loading;
}

/** The core is got by that function. */
export const loadFrom = (get) => (bytes = get);

/** Loads the rest of the package, which the core needs. */
export async function loadRest() {
  try {
    Object.assign(runtime, await import("./rest.js"));
  } catch (cause) {
    throw failed("could not be loaded: the file `rest.mjs`, which belongs beside the script that loads it, could not be fetched", cause);
  }
}

async function begin() {
  const [, module] = await Promise.all([loadRest(), bytes ? bytes().then((given) => compile("that is in the bundle", async () => WebAssembly.compile(given))) : fetched()]);
  try {
    start(module);
  } catch (cause) {
    throw failed("is not the one of this version of the package: its file and its script must come from the same one, and from no old cache", cause);
  }
}

async function fetched() {
  let [answer, where] = [];
  try {
    where = core();
    answer = await fetch(where);
  } catch (cause) {
    if (!where) throw failed(`is to be found beside its script, whose address is not known here: ${HOW}`, cause);
    throw failed(`at \`${where}\` could not be fetched: the network, or the page's own policy, whose \`connect-src\` must allow it, refused it`, cause);
  }
  if (!answer.ok) throw failed(`at \`${where}\` could not be fetched (HTTP ${answer.status}); it must be served beside the script that loads it: ${HOW}`);
  const type = answer.headers.get("content-type") ?? "no content type";
  const streams = /^application\/wasm$/i.test(type);
  return compile(`at \`${where}\``, async () => (streams ? WebAssembly.compileStreaming(answer) : WebAssembly.compile(await answer.arrayBuffer())), `, or broke off on its way (it came as ${type}): ${HOW}`);
}

/** The ways out where a bundler leaves the file out. */
const HOW = "esbuild and Rollup leave `core.wasm` out of a bundle; copy it there from the package, or import `hopline/inline`, which has it within";

/** Compiles the core as it comes, or from its bytes if a server does not name its type. */
async function compile(which, work, more = "") {
  if (typeof WebAssembly === "undefined") throw failed(`${which} can't run: WebAssembly is turned off in this browser`);
  try {
    return await work();
  } catch (cause) {
    if (/CSP|Content Security Policy|unsafe-eval/i.test(cause?.message)) {
      throw failed(`${which} may not run: the page's Content-Security-Policy must allow \`'wasm-unsafe-eval'\` in its \`script-src\``, cause);
    }
    throw failed(`${which} is not what was packed${more}`, cause);
  }
}
