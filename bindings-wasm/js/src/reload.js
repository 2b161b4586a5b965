// Code that is evaluated anew while its program goes on: by Vite's hot reload, or as a notebook's cell. The client that it makes takes over from the
// one that it made before, which nobody can close any more. It is recognised only where that is certain.

import { Ref } from "./dropped.js";

/** By store, account and place: the clients of the last evaluation of that code, of every copy of this package. */
const made = (globalThis[Symbol.for("hopline.made")] ??= new Map());

/** The key of what says where a store keeps its records. */
export const PLACE = Symbol.for("hopline.place");

/**
 * The place in the program of the exception that the constructor of a client made, and the evaluation of its code; `undefined` where that is not
 * evaluated anew.
 */
export function evaluated(stack) {
  const frames = String(stack).split("\n").filter((line) => /^\s+at /.test(line));
  const [frame = "", ...above] = frames.slice(frames.findLastIndex((line) => /^\s+at new /.test(line)) + 1);
  // Vite gives a module that has changed another address.
  const [, file, query] = /((?:https?|file):\/\/[^\s)?]+)(\?[^\s)]*)?:\d+:\d+\)?$/.exec(frame) ?? [];
  if (file) return { place: file, evaluation: /[?&]t=(\d{10,})/.exec(query)?.[1] ?? "first" };
  // A cell has no file, and Node's own evaluation right above it: a function of the cell that is called later has not.
  const cell = /^\s+at ((?:evalmachine\.)?<anonymous>|REPL\d+):(\d+:\d+)$/.exec(frame);
  return cell && /\(node:vm:/.test(above[0]) ? { place: `cell ${cell[2]}` } : undefined;
}

/**
 * Notes a client by where it is made, and ends those that the same code made before it was evaluated anew: returns the promise of that, or
 * `undefined` if there are none.
 */
export function takeOver({ api, account, store, stack }, engine) {
  const where = store?.[PLACE];
  const here = where === undefined ? undefined : evaluated(stack);
  if (!here) return undefined;
  const key = JSON.stringify([api, account ?? "", where, here.place]);
  const before = made.get(key);
  // What a cell makes in one go, such as in a loop, are several clients.
  const isSame = before && (here.evaluation === undefined ? before.isFresh : here.evaluation === "first" || before.evaluation === here.evaluation);
  // A client that is dropped is collected.
  if (isSame) return void before.engines.push(new Ref(engine));
  const own = { evaluation: here.evaluation, engines: [new Ref(engine)], isFresh: true };
  Promise.resolve().then(() => (own.isFresh = false));
  made.set(key, own);
  const living = (before?.engines ?? []).flatMap((ref) => ref.deref() ?? []).filter((one) => !one.isClosing);
  return living.length > 0 ? Promise.allSettled(living.map((one) => one.close())) : undefined;
}
