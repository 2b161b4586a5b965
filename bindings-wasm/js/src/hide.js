/**
 * A member that is there for whoever asks for it by its name. It is not enumerable, so it is in no copy and no JSON, and it
 * is a getter, since the consoles of browsers show the values of members that are not enumerable.
 */
export function hide(object, name, value) {
  const set = (other) => {
    value = other;
  };
  Object.defineProperty(object, name, { get: () => value, set, enumerable: false, configurable: true });
}

/** The class, whose method of that name is what `await using` or, by the symbol, `using` calls, where there is that. */
export function disposable(name, of, symbol = Symbol.asyncDispose) {
  if (symbol) Object.defineProperty(of.prototype, symbol, { value: of.prototype[name] });
  return of;
}
