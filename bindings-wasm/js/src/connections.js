// The connection of its own that each write gets: a used one may be closing, and then nobody knows whether a write without a key was done.

/**
 * Returns the maker of such connections over the `fetch` of Node, Bun and Deno, and over that of any `undici` that this program has loaded, with the
 * settings of its dispatcher. It makes none if that is the program's own and does more than connect, such as for a test, a proxy or an
 * interceptor. A connection is an option for `fetch`; `close` lets its request end, and `destroy` does not.
 */
export function connections(fetch, isGiven) {
  const { Bun, Deno } = globalThis;
  if (!isGiven && Bun) return () => ({ option: { keepalive: false } });
  if (!isGiven && typeof Deno?.createHttpClient === "function") return () => ofDeno(Deno.createHttpClient({ poolMaxIdlePerHost: 0 }));
  const hasFetch = (exports) => Object.getOwnPropertyDescriptor(Object(exports), "fetch")?.value === fetch;
  const modules = Object.values((typeof require === "function" && require.cache) || {});
  const loaded = modules.find((module) => hasFetch(module?.exports) && typeof module.exports.getGlobalDispatcher === "function");
  if (isGiven && !loaded) return undefined;
  // Node has no dispatcher before something of its `fetch` was used.
  const dispatcher = loaded ? loaded.exports.getGlobalDispatcher : () => globalThis.Headers && globalThis[Symbol.for("undici.globalDispatcher.1")];
  return () => ofUndici(another(dispatcher()));
}

const ofUndici = (dispatcher) => dispatcher && { option: { dispatcher }, close: () => dispatcher.close(), destroy: () => dispatcher.destroy() };

function ofDeno(client) {
  const close = async () => client.close();
  return { option: { client }, close, destroy: close };
}

function another(dispatcher) {
  const made = dispatcher?.constructor;
  if (!made || dispatcher.dispatch !== made.prototype.dispatch) return undefined;
  // `undici` 8 keeps its own dispatcher beside, and gives older ones, such as Node's, this one around it.
  if (made.name === "Dispatcher1Wrapper") {
    const own = another(globalThis[Symbol.for("undici.globalDispatcher.2")]);
    return own && new made(own);
  }
  const symbols = Object.getOwnPropertySymbols(dispatcher);
  const [options, factory] = ["options", "factory"].map((name) => dispatcher[symbols.find(({ description }) => description === name)]);
  return made.name === "Agent" && options && /^defaultFactory/.test(factory?.name) ? new made(options) : undefined;
}

/** A connection of its own; `undefined` if none can be made. */
export function connected(connection) {
  try {
    return connection?.();
  } catch {
    return undefined;
  }
}
