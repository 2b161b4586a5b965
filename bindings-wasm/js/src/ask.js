import { asked, refuse } from "./error.js";
import { host } from "./host.js";
import { runtime } from "./runtime.js";
import { encode } from "./values.js";

/** Asks the core a question that needs no client. */
export function ask(question, given) {
  return JSON.parse(now(question, question, encode(question, "given", given)));
}

/** The error of a call that is not made, in the words that every host uses for it. */
export function refusal(operation, because, more) {
  // A client that was closed before its core was there.
  if (!isHere()) return refuse("misuse", operation, "was called on a client that is closed", { advice: "new_client" });
  try {
    return asked(() => runtime.hostText("refusal", encode("refusal", "given", { operation, because, ...more }), ""), { called: operation });
  } catch (error) {
    return error;
  }
}

/** Returns true if the core is loaded. If not, loading begins; a call reports its failure. */
export function isHere() {
  try {
    const loading = host.load();
    loading?.catch(() => {});
    return !loading;
  } catch {
    return false;
  }
}

/** Asks the core a question, if it is loaded. */
export function now(operation, question, given) {
  if (isHere()) return asked(() => runtime.hostText(question, given, ""));
  throw refuse("misuse", operation, "the core is not loaded yet; await `load()` or any call of a client first");
}
