// Runs one case: each step of its script says what is done to the client, or what the client must do next.
import { StepKind, hostText } from "hopline";

import { checkCase } from "./format.mjs";
import { Mismatch, equals, fail, like, same, short, within } from "./matching.mjs";
import { walk } from "./walk.mjs";
import { World, bytes, noSecret } from "./world.mjs";

/** Runs a case. The error says at which step it failed, what was expected and what came. */
export function run(found) {
  const verbs = checkCase(found);
  let world;
  try {
    world = new World(found);
  } catch (error) {
    if (error instanceof Error) throw error;
    noSecret("an error", JSON.stringify(error));
    if (!found.refused) fail(`the client was refused: ${error.message}`);
    return like(found.refused, error, "refused");
  }
  if (found.refused) fail("expected the client to be refused, and it was not");
  verbs.forEach((verb, n) => {
    try {
      DO[verb](world, found.script[n][verb], found.script[n]);
    } catch (error) {
      throw new Error(`step ${n + 1} (${verb}): ${error instanceof Mismatch ? error.message : error.stack}`);
    }
  });
  world.drained();
  if (world.out.size > 0) fail(`at the end: ${world.out.size} steps were never answered`);
  world.client.free();
}

const DO = {
  start(world, name, { operation, params = {}, params_text = JSON.stringify(params), options = {} }) {
    world.nameCommand(name, world.client.start(operation, params_text, JSON.stringify(options)));
  },
  save(world, name, step) {
    const { id, data } = world.saveGiven(name, world.next());
    if (data === undefined) fail("expected a save, came a delete");
    if (step.has) like(step.has, world.named(JSON.parse(data)), "has");
    world.nameStep(step.as, id);
    if (step.answer) world.saveAnswered(id, step.answer);
  },
  delete(world, name, step) {
    const { id, data } = world.saveGiven(name, world.next());
    if (data !== undefined) fail(`expected a delete, came a save: ${data}`);
    world.nameStep(step.as, id);
    if (step.answer) world.saveAnswered(id, step.answer);
  },
  send(world, line, step) {
    const kind = world.next();
    if (kind !== StepKind.Send) fail(`expected a send of ${line}, came ${world.show(kind)}`);
    const { id, command, method, url, headers, body, timeoutMs, maxBody, sendBefore } = world.client;
    world.out.add(id);
    const base = world.options.base_url.replace(/\/+$/, "");
    const came = `${method} ${url.startsWith(base) ? url.slice(base.length) : url}`;
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    if (came !== line) fail(`expected a send of ${line}, came ${came} ${text}`);
    if (step.for !== undefined && world.command(step.for) !== command) fail(`expected a send for \`${step.for}\`, came one for ${command}`);
    const all = (name) => headers.filter((_, n) => n % 2 === 1 && headers[n - 1] === name);
    for (const [name, expected] of Object.entries(step.headers ?? {})) {
      if (short(all(name)) !== short(expected === null ? [] : [expected])) fail(`expected the header \`${name}\` ${expected}, came ${all(name)}`);
    }
    const [key] = all("idempotency-key");
    if ((key === undefined) !== (step.key === undefined)) fail(`expected the key \`${step.key}\`, came ${key}`);
    if (key !== undefined) {
      world.keys.bind(step.key, key);
      world.sameKeySameBytes(key, `${came} ${text}`);
    }
    if (step.body !== undefined) equals(step.body, JSON.parse(text || "null"), "body");
    same("body", step.body_text, text);
    same("timeout_ms", step.timeout_ms, timeoutMs);
    same("max_body", step.max_body, maxBody);
    const left = sendBefore - world.now.monotonic;
    if (step.within !== undefined && !within(step.within, left)) fail(`expected to be sent within ${short(step.within)}, came ${left}`);
    world.nameStep(step.as, id);
    if (step.answer) answer(world, id, step.answer);
  },
  resolve(world, name, step) {
    // A name that was never given stands for a step that never was.
    const id = world.steps.get(name) ?? 2 ** 32 - 1;
    const tried = () => (typeof step.answer === "string" ? world.saveAnswered(id, step.answer) : answer(world, id, step.answer));
    if (!step.misuse) return tried();
    try {
      tried();
    } catch (error) {
      if (error instanceof Mismatch) return;
      throw error;
    }
    fail("expected the answer to be refused, and it was taken");
  },
  wait,
  sleep(world, range) {
    world.advance(wait(world, range) - world.now.monotonic);
  },
  advance(world, shift) {
    world.drained();
    world.advance(shift);
  },
  completed,
  complete(world, name, expected) {
    completed(world, name);
    take(world, name, expected);
  },
  take,
  notify(world, expected) {
    for (;;) {
      const step = world.client.poll(...world.at);
      if (step !== StepKind.Notify) fail(`expected an event like ${short(expected)}, came ${world.show(step)}`);
      const { event } = world.client;
      noSecret("an event", JSON.stringify(event));
      try {
        return like(expected, world.named(event), "notify");
      } catch {
        // Another one may follow.
      }
    }
  },
  cancel(world, name) {
    world.client.cancel(world.command(name), ...world.at);
  },
  crash: (world, what) => world.crash(what),
  put: (world, name, step) => world.putByHand(name, step),
  restore(world, names, { same_account = false, refused = {} }) {
    const flat = [...names, ...Object.keys(refused)].flatMap((name) => world.stored(name));
    const restored = JSON.parse(world.client.restore(flat, same_account));
    equals(names, world.named(restored.held), "held");
    const reasons = restored.refused.map(({ record, message }) => [world.named(record), message]);
    equals(Object.keys(refused), reasons.map(([record]) => record), "refused");
    for (const [record, reason] of reasons) {
      if (!reason.includes(refused[record])) fail(`expected \`${record}\` to be refused with \`${refused[record]}\`, came ${reason}`);
    }
  },
  resume(world, name, { as, options = {} }) {
    world.nameCommand(as, world.client.resume(world.records.value(name), JSON.stringify(options)));
  },
  resume_intent(world, intent, { as, nothing, options = {} }) {
    const command = world.client.resumeIntent(intent, JSON.stringify(options));
    if ((command === undefined) !== (nothing === true)) fail(`expected ${nothing ? "nothing" : "something"} to resume, came ${short(command)}`);
    if (command !== undefined) world.nameCommand(as, command);
  },
  reconcile(world, name, step) {
    world.nameCommand(step.as, world.client.start("reconcile", JSON.stringify({ record: world.records.value(name) }), "{}"));
  },
  resume_all(world, names) {
    const commands = [...world.client.resumeAll()];
    if (commands.length !== names.length) fail(`expected ${names.length} commands, came ${commands.length}`);
    names.forEach((name, n) => world.nameCommand(name, commands[n]));
  },
  settle(world, name, step) {
    same("settled", step.done ?? true, world.client.settle(world.records.value(name), step.as === "happened", step.became));
  },
  forget(world, name, step) {
    same("forgotten", step.done ?? true, world.client.forget(world.records.value(name)));
  },
  saved(world, expected) {
    const saved = world.client.savedList();
    noSecret("the list of what is saved", JSON.stringify(saved));
    like(expected, world.named(saved), "saved");
  },
  observe(world, session, step) {
    const told = world.client.observe(session, JSON.stringify(step.seen), ...world.at);
    const { verdict = null, reason, why, command } = told ?? {};
    const differs = verdict !== (step.verdict ?? null) || reason !== step.reason || (step.as === undefined) !== (command === undefined);
    if (differs || (step.why !== undefined && !why?.includes(step.why))) fail(`expected ${short(step)}, came ${short(told)}`);
    if (step.as !== undefined) world.nameCommand(step.as, command);
  },
  walk: (world, name, step) => walk(world, name, step, (page) => DO.send(world, page.send, page)),
  ask(world, question, { given, ok, error }) {
    if ((ok === undefined) === (error === undefined)) fail("an answer is one of `ok` and `error`");
    let answer;
    try {
      answer = JSON.parse(hostText(question, JSON.stringify(given)));
    } catch (refused) {
      if (refused instanceof Error) throw refused;
      noSecret("an error", JSON.stringify(refused));
      if (!error) fail(`expected ${short(ok)}, came ${short(refused)}`);
      return like(error, refused, "error");
    }
    if (!ok) fail(`expected the error ${short(error)}, came ${short(answer)}`);
    equals(ok, answer, "ok");
  },
};

function wait(world, range) {
  const until = world.drained();
  const found = until === undefined ? null : until - world.now.monotonic;
  if (range === null ? found !== null : found === null || !within(range, found)) fail(`expected a wait of ${short(range)}, came ${found}`);
  return until;
}

function completed(world, name) {
  const expected = world.command(name);
  const step = world.next();
  if (step !== StepKind.Completed || world.client.command !== expected) fail(`expected the end of \`${name}\` (command ${expected}), came ${world.show(step)}`);
}

function take(world, name, { ok, error, nothing }) {
  const taken = world.client.take(world.command(name));
  if (nothing) return taken && fail(`expected nothing to take, came ${short(taken)}`);
  if (!taken) fail("expected a result to take, came nothing");
  if (!ok === !error) fail("a result is one of `ok` and `error`");
  const [how, facts, raw, phase] = taken;
  if (how === "failed") {
    noSecret("an error", JSON.stringify(facts));
    if (!error) fail(`expected success, came ${short(facts)}`);
    return like(error, world.named(facts), "error");
  }
  if (!ok) fail(`expected the error ${short(error)}, came ${raw}`);
  if (ok.facts !== undefined) like(ok.facts, JSON.parse(facts), "facts");
  if (ok.raw !== undefined) like(ok.raw, JSON.parse(raw), "raw");
  same("raw_text", ok.raw_text, raw);
  same("phase", ok.phase, phase ?? undefined);
}

/** What comes of a send. */
function answer(world, id, given) {
  const { status = given.ok === undefined ? undefined : 200, headers = {}, meta, truncated = false } = given;
  const kinds = ["ok", "error", "text", "hex", "failed"].filter((kind) => given[kind] !== undefined);
  if (kinds.length !== 1) throw new Error("an answer has one of `ok`, `error`, `text`, `hex` and `failed`");
  const [kind] = kinds;
  if (kind === "failed") return world.resolve(id, () => world.client.fail(id, given.failed, given.sent, ...world.at));
  if (status === undefined) throw new Error("an answer other than `ok` needs a `status`");
  const envelope = { ok: { success: true, data: given.ok }, error: { success: false, data: null, error: given.error } }[kind];
  const text = envelope ? JSON.stringify({ ...envelope, ...(meta === undefined ? {} : { meta }) }) : (given.text ?? "").repeat(given.repeat ?? 1);
  const body = kind === "hex" ? bytes(given.hex) : new TextEncoder().encode(text);
  const flat = Object.entries(envelope ? { "content-type": "application/json", ...headers } : headers).flat();
  world.resolve(id, () => world.client.respond(id, status, flat, body, truncated, ...world.at));
}
