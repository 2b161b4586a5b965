/** The unit of a product's quantity. The price of an address is for a unit of time, so it is not that. */
export function what({ type, unit }, quantity) {
  if (type !== "static") return unit;
  return quantity === "1" ? "address" : "addresses";
}

/** A name for a purchase that no other one has. */
export function intent(what) {
  const random = [...crypto.getRandomValues(new Uint8Array(5))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${what}-${random}`;
}
