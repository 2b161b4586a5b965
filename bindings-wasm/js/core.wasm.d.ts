/** The core, as the bundler gives a WebAssembly file: for `load`. Most give a `WebAssembly.Module`. */
declare const core: object;
export default core;
