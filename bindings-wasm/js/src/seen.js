import { host } from "./host.js";
import { encode } from "./values.js";

/** What was seen, as the core is told it: what an error says, the status of what has one, or the word for it. */
export function seenOf(seen) {
  const status = seen instanceof Error ? undefined : (seen?.status ?? seen?.statusCode ?? seen);
  if (typeof status === "number") return encode("observe", "seen", { status });
  return encode("observe", "seen", seen instanceof Error ? host.fault(seen) : seen);
}
