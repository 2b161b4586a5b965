// Runs one case: each step of its script says what is done to the client, or what the client must do next.
import { StepKind, hostText } from "../lib/core.mjs";

import { checkCase } from "./format.mjs";
import { Mismatch, equals, fail, like, same, short, within } from "./matching.mjs";
import { walk } from "./walk.mjs";
import { World, bytes, noSecret, text } from "./world.mjs";

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
    world.nameCommand(name, world.client.start(operation, params_text, optionsOf(options, operation)));
  },
  put(world, name, step) {
    const { id, data, isNew, keepFor, letsGo, ...call } = world.asked("put", `a put of \`${name}\``);
    world.records.bind(name, call.name);
    same("new", step.new, isNew);
    same("releases", step.releases, letsGo);
    same("keep_for", step.keep_for, keepFor ?? null);
    if (step.has) like(step.has, world.named(JSON.parse(text(data))), "has");
    given(world, id, step);
  },
  delete(world, name, step) {
    const call = world.asked("delete", `a delete of \`${name}\``);
    world.records.bind(name, call.name);
    given(world, call.id, step);
  },
  claim(world, name, step) {
    const { id, names } = world.asked("claim", `a claim of \`${name}\``);
    if (names.length !== 1) fail(`expected a claim of \`${name}\` alone, came ${names}`);
    world.records.bind(name, names[0]);
    given(world, id, step);
  },
  release(world, name, step) {
    const { id, names } = world.asked("release", `a release of \`${name}\``);
    if (names?.length !== 1) fail(`expected a release of \`${name}\` alone, came ${names}`);
    world.records.bind(name, names[0]);
    given(world, id, step);
  },
  list(world, kind, step) {
    if (kind !== "open" && kind !== "all") throw new Error("`list` is one of `open` and `all`");
    const { id, open } = world.asked("list", `a list of ${kind}`);
    same("open", kind === "open", open);
    given(world, id, step);
  },
  spend(world, name, step) {
    const { id, entry, amount, day, cap } = world.asked("spend", `a spend of \`${name}\``);
    world.entries.bind(name, entry);
    same("usd", step.usd, amount);
    same("day", step.day, day ?? null);
    same("cap", step.cap, cap ?? null);
    given(world, id, step);
  },
  send(world, line, step) {
    const kind = world.next();
    if (kind !== StepKind.Send) fail(`expected a send of ${line}, came ${world.show(kind)}`);
    const { id, command, head, body, timeoutMs, maxBody, sendBefore } = world.client;
    const [, method, url, ...headers] = head.split("\n");
    world.out.add(id);
    const base = world.options.base_url.replace(/\/+$/, "");
    const came = `${method} ${url.startsWith(base) ? url.slice(base.length) : url}`;
    const sent = new TextDecoder("utf-8", { fatal: true }).decode(body);
    if (came !== line) fail(`expected a send of ${line}, came ${came} ${sent}`);
    if (step.for !== undefined && world.command(step.for) !== command) fail(`expected a send for \`${step.for}\`, came one for ${command}`);
    const all = (name) => headers.filter((_, n) => n % 2 === 1 && headers[n - 1] === name);
    for (const [name, expected] of Object.entries(step.headers ?? {})) {
      if (short(all(name)) !== short(expected === null ? [] : [expected])) fail(`expected the header \`${name}\` ${expected}, came ${all(name)}`);
    }
    const [key] = all("idempotency-key");
    if ((key === undefined) !== (step.key === undefined)) fail(`expected the key \`${step.key}\`, came ${key}`);
    if (key !== undefined) {
      world.keys.bind(step.key, key);
      world.sameKeySameBytes(key, `${came} ${sent}`);
    }
    if (step.body !== undefined) equals(step.body, JSON.parse(sent || "null"), "body");
    same("body", step.body_text, sent);
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
    const tried = () => (typeof step.answer === "string" ? world.storeAnswered(id, step.answer) : answer(world, id, step.answer));
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
    const taken = take(world, name, expected);
    if (expected.parts === undefined) return;
    const commands = JSON.parse(taken[2]);
    if (commands.length !== expected.parts.length) fail(`expected ${expected.parts.length} commands, came ${commands.length}`);
    expected.parts.forEach((part, n) => world.nameCommand(part, commands[n]));
  },
  take,
  notify(world, expected) {
    for (;;) {
      const step = world.client.poll(...world.at);
      if (step === StepKind.Store && world.answersItself()) {
        world.answerItself();
        continue;
      }
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
  plant(world, record, { name, text, change }) {
    if (name !== undefined) world.records.bind(record, name);
    if ((text === undefined) === (change === undefined)) throw new Error("`plant` takes one of `text` and `change`");
    world.plant(record, text, change);
  },
  lost(world, names) {
    const records = names.map((name) => world.records.value(name));
    world.store.takeAway(records);
    world.client.lost(records.join("\n"), ...world.at);
  },
  resume(world, name, { as, options = {} }) {
    world.nameCommand(as, world.client.resume(world.records.value(name), optionsOf(options)));
  },
  resume_intent(world, intent, { as, options = {} }) {
    world.nameCommand(as, world.client.resumeIntent(intent, optionsOf(options)));
  },
  reconcile(world, name, step) {
    world.nameCommand(step.as, world.client.start("reconcile", JSON.stringify({ record: world.records.value(name) }), "{}"));
  },
  resume_all(world, name, { options = {} }) {
    world.nameCommand(name, world.client.resumeAll(optionsOf(options)));
  },
  settle(world, name, { as, happened, became, early = false }) {
    world.nameCommand(as, world.client.settle(world.records.value(name), happened, became, early));
  },
  forget(world, name, { as }) {
    world.nameCommand(as, world.client.forget(world.records.value(name)));
  },
  release_session(world, session, { done = true }) {
    same("released", done, world.client.releaseSession(session));
  },
  saved(world, expected) {
    const entries = [];
    let after;
    do {
      const command = world.client.saved(after);
      const step = world.next();
      if (step !== StepKind.Completed || world.client.command !== command) fail(`expected the end of \`saved\`, came ${world.show(step)}`);
      const [how, told, raw] = world.client.take(command);
      if (how === "failed") fail(`expected a page, came ${short(told)}`);
      const page = JSON.parse(raw);
      entries.push(...page.entries);
      ({ after } = page);
    } while (after !== undefined);
    noSecret("the list of what is saved", JSON.stringify(entries));
    const named = world.named(entries).sort((one, other) => world.records.place(one.record) - world.records.place(other.record) || 0);
    like(expected, named, "saved");
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

/** The store was asked what the script named. */
function given(world, id, { as, answer }) {
  world.nameStep(as, id);
  if (answer) world.storeAnswered(id, answer);
}

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
  if (nothing) return taken ? fail(`expected nothing to take, came ${short(taken)}`) : undefined;
  if (!taken) fail("expected a result to take, came nothing");
  if (!ok === !error) fail("a result is one of `ok` and `error`");
  const [how, facts, raw, phase] = taken;
  if (how === "failed") {
    noSecret("an error", JSON.stringify(facts));
    if (!error) fail(`expected success, came ${short(facts)}`);
    like(error, world.named(facts), "error");
    return taken;
  }
  if (!ok) fail(`expected the error ${short(error)}, came ${raw}`);
  if (ok.facts !== undefined) like(ok.facts, JSON.parse(facts), "facts");
  if (ok.raw !== undefined) like(ok.raw, JSON.parse(raw), "raw");
  same("raw_text", ok.raw_text, raw);
  same("phase", ok.phase, phase ?? undefined);
  return taken;
}

/** The outcome of a send. */
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
  const lines = Object.entries(envelope ? { "content-type": "application/json", ...headers } : headers).flat().join("\n");
  world.resolve(id, () => world.client.respond(id, status, lines, body, truncated, ...world.at));
}

/** The options of a step, which says where it wants credentials, if it gives a session to its caller. */
function optionsOf(options, operation = "open_session") {
  const gives = operation === "open_session" || operation === "wait_session";
  return JSON.stringify({ ...(gives && { credentials: false }), ...options });
}
