import { refuse } from "./error.js";

const SEEN = ["captcha", "timeout", "block"];
const whole = (value) => Number.isSafeInteger(value) && value >= 0;

/** What each common fact must be, and how that is said. */
const FACTS = {
  status: [(value) => Number.isInteger(value) && value >= 100 && value <= 599, "an HTTP status, 100 to 599"],
  seen: [(value) => SEEN.includes(value), `one of ${SEEN.join(", ")}`],
  latency_ms: [(value) => Number.isFinite(value) && value >= 0, "a number of milliseconds"],
  bytes: [whole, "a whole number of bytes"],
  target: [(value) => hostOf(value) !== undefined, "a host name, or a URL that has one"],
};

/** What was seen through a session, as an object for `reportSessionEvent`. hopline.d.ts documents it. */
export function sessionEvent(facts = {}) {
  if (facts === null || typeof facts !== "object" || Array.isArray(facts)) throw refuse("invalid", "session_event", "the facts must be an object");
  const event = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
  for (const [field, [fits, rule]] of Object.entries(FACTS)) {
    if (field in event && !fits(event[field])) throw refuse("invalid", "session_event", `\`${field}\` must be ${rule}`, { field });
  }
  if (Object.keys(event).length === 0) throw refuse("invalid", "session_event", "an event must say something");
  // A path or a query may hold what is nobody else's business.
  if ("target" in event) event.target = hostOf(event.target);
  return event;
}

function hostOf(target) {
  if (typeof target !== "string" && !(target instanceof URL)) return undefined;
  try {
    const text = String(target);
    return new URL(text.includes("://") ? text : `http://${text}`).hostname || undefined;
  } catch {
    return undefined;
  }
}
