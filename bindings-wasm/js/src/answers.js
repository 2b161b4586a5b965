import { secretEndings, secrets } from "../gen/operations.js";
import { hide } from "./hide.js";
import { secret } from "./secret.js";

/** Facts about answers, beside themselves. */
const metas = new WeakMap();

/** Returns the facts about an answer that a call returned. hopline.d.ts documents it. */
export function meta(answer) {
  const known = metas.get(answer);
  if (known === undefined) return undefined;
  const { request_id: requestId, http_status: httpStatus, attempts } = JSON.parse(known.facts);
  const meta = { requestId, httpStatus, attempts, phase: known.phase };
  // The text may hold secrets, so it shows only when it is read by name.
  hide(meta, "raw", known.raw);
  return meta;
}

/** The answer in the result of a command: plain data, with secrets in their places. */
export function answer(taken) {
  const data = parsed(taken.view ?? taken.raw);
  if (data === null || typeof data !== "object") return data;
  if (taken.type || taken.hasUndocumented) seal(data, taken.type, taken.hasUndocumented);
  return about(data, taken);
}

/** Returns the answer, whose facts, phase and text are known from now on. */
export function about(answer, { facts, phase, raw }) {
  metas.set(answer, { facts, phase, raw });
  return answer;
}

/** Returns a copy of an answer, with the same facts. */
export function like(copy, answer) {
  metas.set(copy, metas.get(answer));
  return copy;
}

/**
 * Parses a service's JSON. A whole number beyond 2^53 becomes the text of its digits: as a number it would be another one, such as another
 * id.
 */
export function parsed(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const isBeyond = (token) => /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));
  let isInText = false;
  // Of a text only its ends and escapes are matched, since its length is unlimited.
  const given = text.replace(/\\.|"|-?\d[\d.eE+-]*/g, (token) => {
    if (token === '"') isInText = !isInText;
    return !isInText && isBeyond(token) ? `"${token}"` : token;
  });
  return JSON.parse(given);
}

function isSecretName(name) {
  const plain = name.replace(/[_ -]/g, "").toLowerCase().replace(/s$/, "");
  return secretEndings.some((ending) => plain.endsWith(ending));
}

/**
 * Puts a `Secret` in the place of each secret of a value of that type of the table. If undocumented members may be secrets, all members are
 * checked: a member with the name of a secret is one, unless the table says otherwise.
 */
function seal(value, type, hasUndocumented) {
  if (Array.isArray(value)) return value.forEach((item) => seal(item, type, hasUndocumented));
  if (value === null || typeof value !== "object") return;
  const known = secrets[type] ?? {};
  for (const name of Object.keys(hasUndocumented ? value : known)) {
    const member = value[name];
    if (member === null || member === undefined) continue;
    // A member of the table is a secret, is not one, or is of a type that has some.
    const is = Object.hasOwn(known, name) ? known[name] : isSecretName(name);
    if (is === true) value[name] = secret(typeof member === "string" ? member : JSON.stringify(member));
    else seal(member, is, hasUndocumented);
  }
}
