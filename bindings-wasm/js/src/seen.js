import { exceptionOf } from "./exceptions.js";
import { encode } from "./values.js";
import { isError, memberOf } from "./words.js";

/** An observation in the core's form: the facts of an error, the status of an object that has one, or the word. */
export function seenOf(seen) {
  if (isError(seen)) return encode("observe", "seen", exceptionOf(seen));
  const status = memberOf(seen, "status") ?? memberOf(seen, "statusCode") ?? seen;
  return encode("observe", "seen", typeof status === "number" ? { status } : seen);
}
