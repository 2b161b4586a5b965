import { hide } from "./hide.js";
import { ours, respelled } from "./names.js";
import { onAbort } from "./signal.js";
import { isError, memberOf, placeOf, redacted, wordsOf } from "./words.js";

/** The failure of an operation. `HoplineError` in hopline.d.ts documents the members. */
export class HoplineError extends Error {
  /** @param fields the error as the core writes it */
  constructor({ message, cause, ...fields }) {
    super(message, cause && { cause: cause.kind && !(cause instanceof Error) ? new new.target(cause) : cause });
    for (const [name, value] of Object.entries(fields)) {
      Object.defineProperty(this, name, { value, enumerable: true, writable: true, configurable: true });
    }
    quiet(this);
  }

  /** True if this client refused the operation, and not the service. */
  get isRefusedByUs() {
    return this.refused_by_us === true;
  }

  /** Returns the error without a server's text, for logs. */
  toJSON() {
    const { name, message, stack, cause } = this;
    return { name, message, ...this, stack, ...(cause instanceof Error && { cause: cause.toJSON?.() ?? { name: cause.name, message: cause.message } }) };
  }
}

const QUIET = ["text", "details", "raw"];

/** Hides a server's text, which may repeat the request, so that it shows only when it is read by name. */
export function quiet(fields) {
  for (const name of QUIET) if (name in fields) hide(fields, name, fields[name]);
}

// On the prototype, so that it is not a member of each error.
Object.defineProperty(HoplineError.prototype, "name", { value: "HoplineError", writable: true, configurable: true });

/**
 * Makes the error of the core, which gives it as an object. The core knows the outcomes of earlier sends, but not why its host failed, so
 * the host's own causes are added where they say more.
 */
export function read(told, { reason, store, trouble, isBusyHere, called, given, place, unauthorized, variable } = {}) {
  const { message, what, ...fields } = respelled(told, called, given);
  const own = { cancelled: reason, store }[fields.kind];
  const isUnheard = fields.kind === "unavailable" && fields.status === undefined;
  const because = fields.kind === "store" ? store : isUnheard ? trouble : undefined;
  const why = because ? `${what}: ${because.what ?? (because.name === "Error" ? "" : `${because.name}: `) + because.message}` : what;
  const said = [
    message.replace(what, () => why),
    fields.advice === "check_base_url" ? `, which is \`${place}\`` : fields.content_type !== undefined && `; the base URL is \`${place}\``,
    (fields.status === 401 || what.includes("another API key or base URL")) && unauthorized,
    fields.kind === "busy" && isBusyHere && "; that client is one of this process: make it once, also where modules are loaded anew, such as by `globalThis.agent ??= new AgentClient()`",
  ];
  const from = variable?.(fields.field);
  const whole = ofClient(said.filter(Boolean).join(""));
  return new HoplineError({ message: from ? whole.replace(/^client: /, `client: in ${from}, `) : whole, ...fields, what: why, cause: own ?? caused(fields.cause, trouble) });
}

/** Adds the exception of `fetch` below the failures that it caused. */
function caused(cause, trouble) {
  return cause && trouble ? { ...cause, cause: caused(cause.cause, trouble) } : (cause ?? trouble);
}

/**
 * The exception of a store in a form that people may see: its name, its message and its place. An error of the system keeps its code and
 * call, and one of ours is shown as it is.
 */
export function spoken(error) {
  let [name, words] = [typeof error, "it can't be read"];
  try {
    const isSystems = isError(error) && typeof error.code === "string" && typeof error.syscall === "string";
    if (error instanceof HoplineError && error.kind === "store") return error;
    // Only the system's members: libraries put the sent data beside them.
    if (isSystems) return Object.assign(new Error(redacted(String(error.message))), { code: error.code, syscall: error.syscall, ...(typeof error.path === "string" && { path: error.path }) });
    if (isError(error)) name = String(error.name);
    words = wordsOf(error);
  } catch {
    // Anything can be thrown, even an object that throws when it is read.
  }
  return Object.assign(new Error(words), { name });
}

/** An error of a store that could not be opened at all, so that its call was certainly not done. */
export function notOpened(error) {
  if (isError(error)) hide(error, "notOpened", true);
  return error;
}

/** An object that throws when it is read counts as false. */
export function isNotOpened(error) {
  return isError(error) && memberOf(error, "notOpened") === true;
}

/** Returns the result of a function of the core, or throws its error. */
export function asked(question, more) {
  try {
    return question();
  } catch (error) {
    // An error of JavaScript's own is not a refusal of the core.
    throw error instanceof Error ? error : read(error, more);
  }
}

/**
 * The exception of a `fetch` as an error that carries nothing along: some keep the request, and with it its `secrets`. `more` is added to
 * every failure of this `fetch`.
 */
export function plain(error, { secrets, more, isGiven }) {
  const cause = error?.cause ?? error;
  const place = isGiven ? placeOf(error ?? {}) : undefined;
  const told = redacted([cause?.code, cause?.message ?? String(cause)].filter(Boolean).join(": "), secrets);
  return new Error([told, place && ` (${place})`, more].filter(Boolean).join(""));
}

/** Does the work before a command begins, and gives it up when the signal aborts: nothing was sent by then. */
export function heed(operation, signal, work) {
  if (!signal) return work();
  const given = () => refuse("cancelled", operation, "was cancelled before it began; nothing was sent", { cause: signal.reason });
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(given());
    const unheard = onAbort(signal, () => reject(given()));
    work().then(resolve, reject).finally(unheard);
  });
}

/** The next step, by the kind of the refusal. */
const NEXT = { cancelled: "nothing", store: "mend_store", unavailable: "retry_later" };

/** A client is made from options, and not by a request. */
const ofClient = (message) => (message.startsWith("client: ") ? message.replace(/change the request$/, "change the options") : message);

/** Makes the error of a call that was refused here, before it reached the core. */
export function refuse(kind, operation, what, more) {
  const next = { said: kind === "invalid" ? "; nothing was changed; change the request" : "", advice: NEXT[kind] ?? "change_request" };
  const { said, ...rest } = { ...next, ...more };
  return new HoplineError({ message: ofClient(`${ours(operation)}: ${what}${said}`), kind, effect: "none", operation, what, attempts: 0, ...rest });
}
