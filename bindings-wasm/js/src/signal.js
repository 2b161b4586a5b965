/** By signal: the functions to call on its abort, and the one listener that calls them, since Node warns of more than ten. */
const heard = new WeakMap();

/** Calls a function once the signal is aborted, unless the returned function was called before. */
export function onAbort(signal, stop) {
  const { hearers, tell } = heard.get(signal) ?? first(signal);
  hearers.add(stop);
  return () => {
    hearers.delete(stop);
    if (hearers.size > 0) return;
    signal.removeEventListener("abort", tell);
    heard.delete(signal);
  };
}

function first(signal) {
  const hearers = new Set();
  const tell = () => [...hearers].forEach((stop) => stop());
  heard.set(signal, { hearers, tell });
  signal.addEventListener("abort", tell);
  return heard.get(signal);
}
