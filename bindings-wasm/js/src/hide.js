/**
 * What holds something hidden. Such an object must not be taken for plain data: whoever shares what two answers have in
 * common, as TanStack Query does, compares and copies what is enumerable. It would go on showing the password of the older
 * answer, and would drop the exact text of the newer one.
 */
const HOLDER = Object.create(Object.prototype, {
  // Immer refuses to work on what is not plain, unless it says that it may be copied.
  [Symbol.for("immer-draftable")]: { value: true },
});

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

/** The same for what must not be lost, or stay, where answers are shared. */
export function keepHidden(object, name, value) {
  hide(object, name, value);
  Object.setPrototypeOf(object, HOLDER);
}
