import { hostText } from "../gen/hopline_wasm.js";
import { asked, refuse } from "./error.js";
import { host } from "./host.js";
import { encode } from "./values.js";

/** Asks the core what needs no client. */
export function ask(question, given) {
  return JSON.parse(now(question, question, encode(question, "given", given)));
}

/** The error of a call that is not made, in the words that every language has for it. */
export function refusal(operation, because, more) {
  try {
    return asked(() => hostText("refusal", encode("refusal", "given", { operation, because, ...more }), ""), { called: operation });
  } catch (error) {
    return error;
  }
}

/** Whether the core is here. Where it is not, it is on its way. */
export function isHere() {
  const loading = host.load();
  loading?.catch(() => {});
  return !loading;
}

/** What the core says to a question, where the core is here. */
export function now(operation, question, given) {
  if (isHere()) return asked(() => hostText(question, given, ""));
  throw refuse("misuse", operation, "the core is not loaded yet; await `load()` or any call of a client first");
}
