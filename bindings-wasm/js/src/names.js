/*
 * The core spells options as the service spells its fields, `max_body`; here they are `maxBody`. What it says of them is
 * told in the spelling that the caller used.
 */

/** The options of more than one word. Parameters and answers are the service's, and keep its spelling. */
const OPTIONS = new Set([
  "allow_http", "api_key", "at_least", "auto_rotate", "backend_ready", "backoff_ms", "base_url", "conflict_ms", "daily_cap_usd", "deadline_ms",
  "expected_charge_usd", "idempotency_key", "max_backoff_ms", "max_body", "max_pages", "max_unit_price", "retry_paid", "same_account", "throttled_backoff_ms", "timeout_ms",
  "token_codes", "wait_for_intent", "window_ms",
]);

/** A name of the core as it is spelled here. */
export const ours = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** An error of the core with the names of options as they are spelled here. */
export function respelled(fields) {
  const { field, message, what, cause } = fields;
  // Whatever stands for a wrong option is one.
  const isOption = (name) => OPTIONS.has(name) || field === "options";
  const text = (told) => told.replace(/`([\w.]+)`/g, (all, name) => (isOption(name) ? `\`${ours(name)}\`` : all));
  return {
    ...fields,
    message: text(message),
    what: text(what),
    ...(field !== undefined && { field: isOption(field) ? ours(field) : field }),
    ...(cause !== undefined && { cause: respelled(cause) }),
  };
}
