import { Registry } from "./dropped.js";

/** The secrets that still have a reference, by their texts, so that equal texts are the same object. */
const known = new Map();
const dropped = new Registry((text) => {
  if (!known.get(text)?.deref()) known.delete(text);
});
let count = 0;

/** A text that shows only by `reveal`. hopline.d.ts documents it. */
export class Secret {
  constructor(text) {
    if (typeof text !== "string") throw new TypeError("a Secret is made of a text");
    // A comparison of the members of two secrets shows that they differ.
    this.serial = ++count;
    // A function of its own works through a proxy, too, such as those of libraries that observe reads.
    Object.defineProperty(this, "reveal", { value: () => text });
    Object.freeze(this);
  }

  toString() {
    return "[redacted]";
  }

  toJSON() {
    return "[redacted]";
  }

  [Symbol.for("nodejs.util.inspect.custom")]() {
    return "[redacted]";
  }
}

/** The secret of a text. */
export function secret(text) {
  const found = known.get(text)?.deref();
  if (found) return found;
  const made = new Secret(text);
  if (typeof WeakRef === "undefined") return made;
  known.set(text, new WeakRef(made));
  dropped.register(made, text);
  return made;
}

/** The caller's value, which may be a secret. */
export const revealed = (given) => (given instanceof Secret ? given.reveal() : given);
