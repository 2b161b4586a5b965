import { exceptionOf } from "./exceptions.js";
import { encode } from "./values.js";
import { isError, memberOf } from "./words.js";

/** What was seen, as the core is told it: what an error says, the status of what has one, or the word for it. */
export function seenOf(seen) {
  if (isError(seen)) return encode("observe", "seen", exceptionOf(seen));
  const status = memberOf(seen, "status") ?? memberOf(seen, "statusCode") ?? seen;
  return encode("observe", "seen", typeof status === "number" ? { status } : seen);
}
