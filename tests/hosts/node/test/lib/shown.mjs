import { Console } from "node:console";
import { Writable } from "node:stream";
import { inspect } from "node:util";

import { meta } from "hopline";

/** Every way in which a value, and what is known of it, is shown or copied. */
export function shown(value) {
  const all = [value, meta(value), typeof value === "object" && { ...value }];
  return all.map((one) => [...printed(one), JSON.stringify(one), String(one), `${one?.stack}`, cloned(one)].join("\n")).join("\n");
}

function printed(value) {
  const lines = [];
  const stream = new Writable({ write: (chunk, _, done) => (lines.push(String(chunk)), done()) });
  const console = new Console(stream);
  console.log(value, "%o %O %s %j", value, value, value, value);
  console.dir(value, { depth: 20, showHidden: true });
  console.table(value);
  return [inspect(value, { depth: 20 }), inspect(value, { depth: 20, showHidden: true, customInspect: false }), ...lines];
}

/** The copy that a worker would be sent; a value that can't be sent shows nothing. */
function cloned(value) {
  try {
    return inspect(structuredClone(value), { depth: 20, showHidden: true });
  } catch (error) {
    return error.message;
  }
}
