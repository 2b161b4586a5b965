/**
 * Defines a member that shows only when it is read by name. The member is not enumerable, so it is in no copy and no JSON, and it is a
 * getter, since the consoles of browsers show the values of members that are not enumerable.
 */
export function hide(object, name, value) {
  const set = (other) => {
    value = other;
  };
  Object.defineProperty(object, name, { get: () => value, set, enumerable: false, configurable: true });
}

/** Returns the class, whose method of that name is called by `await using` or, by the symbol, `using`, if the environment has that. */
export function disposable(name, of, symbol = Symbol.asyncDispose) {
  if (symbol) Object.defineProperty(of.prototype, symbol, { value: of.prototype[name] });
  return of;
}
