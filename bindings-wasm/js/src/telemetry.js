import { ask } from "./ask.js";

/** What was seen through a session, as an object for `reportSessionEvent`. hopline.d.ts documents it. */
export function sessionEvent(facts) {
  return ask("session_event", { facts });
}
