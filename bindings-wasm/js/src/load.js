import { initSync } from "../gen/hopline_wasm.js";
import { refuse } from "./error.js";

/** Bundlers look for this very expression, and replace it with the file's address. */
const core = () => new URL("./core.wasm", import.meta.url);
let loading;
let loaded = false;

/** Loads the core: a promise, or `undefined` if it is loaded already. The next call tries a failed load again. */
export function load() {
  if (loaded) return undefined;
  loading ??= begin().finally(() => (loading = undefined));
  return loading;
}

async function begin() {
  initSync({ module: await compile(await get()) });
  loaded = true;
}

async function get() {
  let answer;
  try {
    answer = await fetch(core());
  } catch (cause) {
    throw failed("could not be fetched: the network, or the page's own policy, whose `connect-src` must allow it, refused it", cause);
  }
  if (!answer.ok) throw failed(`could not be fetched (HTTP ${answer.status}); it must be served beside the script that loads it`);
  return answer;
}

/** Compiles the core as it comes, or from its bytes if a server does not name its type. */
async function compile(answer) {
  if (typeof WebAssembly === "undefined") throw failed("can't run: WebAssembly is turned off in this browser");
  const type = answer.headers.get("content-type") ?? "no content type";
  const streams = /^application\/wasm$/i.test(type);
  try {
    return await (streams ? WebAssembly.compileStreaming(answer) : WebAssembly.compile(await answer.arrayBuffer()));
  } catch (cause) {
    if (/CSP|Content Security Policy|unsafe-eval/i.test(cause?.message)) {
      throw failed("may not run: the page's Content-Security-Policy must allow `'wasm-unsafe-eval'` in its `script-src`", cause);
    }
    throw failed(`is not what was packed, or broke off on its way (it came as ${type})`, cause);
  }
}

function failed(what, cause) {
  return refuse("unavailable", "load", `the core at \`${core()}\` ${what}; nothing was sent`, { cause });
}
