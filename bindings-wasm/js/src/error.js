import { hide } from "./hide.js";
import { ours, respelled } from "./names.js";
import { onAbort } from "./signal.js";
import { isError, memberOf, placeOf, redacted, wordsOf } from "./words.js";

/** What an operation can end with, other than its answer. `HoplineError` in hopline.d.ts documents the members. */
export class HoplineError extends Error {
  /** @param fields the error as the core writes it */
  constructor({ message, cause, ...fields }) {
    super(message, cause && { cause: cause.kind && !(cause instanceof Error) ? new new.target(cause) : cause });
    for (const [name, value] of Object.entries(fields)) {
      Object.defineProperty(this, name, { value, enumerable: true, writable: true, configurable: true });
    }
    quiet(this);
  }

  /** Whether it was refused here, and not by the service. */
  get isRefusedByUs() {
    return this.refused_by_us === true;
  }

  /** All of it but what a server wrote, for logs. */
  toJSON() {
    const { name, message, stack, cause } = this;
    return { name, message, ...this, stack, ...(cause instanceof Error && { cause: cause.toJSON?.() ?? { name: cause.name, message: cause.message } }) };
  }
}

const QUIET = ["text", "details", "raw"];

/** What a server wrote may repeat what it was sent, so it shows only when it is asked for by name. */
export function quiet(fields) {
  for (const name of QUIET) if (name in fields) hide(fields, name, fields[name]);
}

// On the prototype, so that it is no member of each error.
Object.defineProperty(HoplineError.prototype, "name", { value: "HoplineError", writable: true, configurable: true });

/**
 * An error of the core, which gives it as an object. The core knows what came of earlier sends; why its host failed it does
 * not know, so the host's own causes are added where they say more.
 */
export function read(told, { reason, store, trouble, isBusyHere, called, given, place, unauthorized } = {}) {
  const { message, what, ...fields } = respelled(told, called, given);
  const own = { cancelled: reason, store }[fields.kind];
  const isUnheard = fields.kind === "unavailable" && fields.status === undefined;
  const because = fields.kind === "store" ? store : isUnheard ? trouble : undefined;
  const why = because ? `${what}: ${because.what ?? (because.name === "Error" ? "" : `${because.name}: `) + because.message}` : what;
  const said = [
    message.replace(what, () => why),
    fields.advice === "check_base_url" ? `, which is \`${place}\`` : fields.content_type !== undefined && `; the base URL is \`${place}\``,
    fields.status === 401 && unauthorized,
    fields.kind === "busy" && isBusyHere && "; that client is one of this process: make it once, also where modules are loaded anew, such as by `globalThis.agent ??= new AgentClient()`",
  ];
  return new HoplineError({ message: ofClient(said.filter(Boolean).join("")), ...fields, what: why, cause: own ?? caused(fields.cause, trouble) });
}

/** What `fetch` threw stands below the failures that came of it. */
function caused(cause, trouble) {
  return cause && trouble ? { ...cause, cause: caused(cause.cause, trouble) } : (cause ?? trouble);
}

/** What a store threw, to be told to people: its name, its words and its place. One of the system keeps its code and call, and one of ours is told as it is. */
export function spoken(error) {
  let [name, words] = [typeof error, "it can't be read"];
  try {
    const isSystems = isError(error) && typeof error.code === "string" && typeof error.syscall === "string";
    if (error instanceof HoplineError && error.kind === "store") return error;
    // Only what is the system's: libraries put what they were sent with beside it.
    if (isSystems) return Object.assign(new Error(redacted(String(error.message))), { code: error.code, syscall: error.syscall, ...(typeof error.path === "string" && { path: error.path }) });
    if (isError(error)) name = String(error.name);
    words = wordsOf(error);
  } catch {
    // Anything can be thrown, even what breaks when it is looked at.
  }
  return Object.assign(new Error(words), { name });
}

/** An error of a store that could not be opened at all, so that what it was asked is surely not done. */
export function notOpened(error) {
  if (isError(error)) hide(error, "notOpened", true);
  return error;
}

/** What breaks when it is looked at says nothing. */
export function isNotOpened(error) {
  return isError(error) && memberOf(error, "notOpened") === true;
}

/** What a function of the core says, or its error. */
export function asked(question, more) {
  try {
    return question();
  } catch (error) {
    // An error of JavaScript's own is none of the core's refusals.
    throw error instanceof Error ? error : read(error, more);
  }
}

/**
 * What a `fetch` threw, as an error that can't carry anything along: some keep the request, and with it its secrets. `more` is
 * what is to be said of every failure of this one.
 */
export function plain(error, secrets, more, isGiven) {
  const cause = error?.cause ?? error;
  const place = isGiven ? placeOf(error ?? {}) : undefined;
  const told = redacted([cause?.code, cause?.message ?? String(cause)].filter(Boolean).join(": "), secrets);
  return new Error([told, place && ` (${place})`, more].filter(Boolean).join(""));
}

/** Does what comes before a command begins, and gives it up when the signal does: nothing was sent by then. */
export function heed(operation, signal, work) {
  if (!signal) return work();
  const given = () => refuse("cancelled", operation, "was cancelled before it began; nothing was sent", { cause: signal.reason });
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(given());
    const unheard = onAbort(signal, () => reject(given()));
    work().then(resolve, reject).finally(unheard);
  });
}

/** What to do next, by the kind of what was refused. */
const NEXT = { cancelled: "nothing", store: "mend_store", unavailable: "retry_later" };

/** A client is made of options, and not by a request. */
const ofClient = (message) => (message.startsWith("client: ") ? message.replace(/change the request$/, "change the options") : message);

/** A call that was refused here, before the core heard of it. */
export function refuse(kind, operation, what, more) {
  const next = { said: kind === "invalid" ? "; nothing was changed; change the request" : "", advice: NEXT[kind] ?? "change_request" };
  const { said, ...rest } = { ...next, ...more };
  return new HoplineError({ message: ofClient(`${ours(operation)}: ${what}${said}`), kind, effect: "none", operation, what, attempts: 0, ...rest });
}
