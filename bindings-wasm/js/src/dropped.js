// Objects without references. Workers of before May 2025 collect them, but do not tell.

/** Calls a function with what was registered once an object without references is collected. */
export const Registry = globalThis.FinalizationRegistry ?? class {
  register() {}
  unregister() {}
};

/** A reference that does not keep its object, where there is such a one. */
export const Ref = globalThis.WeakRef ?? class {
  constructor(object) {
    this.deref = () => object;
  }
};
