// The members that tests/vectors/README.md names, and no others: what is not understood must not pass.

const FILE = ["about", "source", "cases"];
const CASE = ["name", "entropy", "client", "now", "refused", "script"];
const ANSWER = ["status", "headers", "ok", "error", "meta", "text", "repeat", "hex", "truncated", "failed", "sent"];
const SUCCESS = ["facts", "raw", "raw_text", "phase"];
const RESULT = { ok: SUCCESS, error: undefined };

/** By verb: what may stand beside it, each with the members that it may have itself. */
const VERBS = {
  start: { operation: undefined, params: undefined, params_text: undefined, options: undefined },
  put: { has: undefined, new: undefined, keep_for: undefined, releases: undefined, as: undefined, answer: undefined },
  delete: { as: undefined, answer: undefined },
  claim: { as: undefined, answer: undefined },
  release: { as: undefined, answer: undefined },
  list: { as: undefined, answer: undefined },
  spend: { usd: undefined, day: undefined, cap: undefined, as: undefined, answer: undefined },
  send: {
    for: undefined, headers: undefined, key: undefined, body: undefined, body_text: undefined, timeout_ms: undefined,
    max_body: undefined, within: ["min", "max"], as: undefined, answer: ANSWER,
  },
  resolve: { answer: ANSWER, misuse: undefined },
  wait: {},
  sleep: {},
  advance: {},
  completed: {},
  complete: { ...RESULT, parts: undefined },
  take: { ...RESULT, nothing: undefined },
  notify: {},
  cancel: {},
  crash: {},
  plant: { text: undefined, change: undefined, name: undefined },
  lost: {},
  resume: { as: undefined, options: undefined },
  resume_intent: { as: undefined, options: undefined },
  reconcile: { as: undefined },
  resume_all: { options: undefined },
  settle: { as: undefined, happened: undefined, became: undefined, early: undefined },
  forget: { as: undefined },
  release_session: { done: undefined },
  saved: {},
  observe: { seen: undefined, verdict: undefined, reason: undefined, why: undefined, as: undefined },
  walk: {
    operation: undefined, params: undefined, from: undefined, position_text: undefined, max_pages: undefined, pages: undefined,
    items: undefined, end: undefined, error: undefined,
  },
  ask: { given: undefined, ok: undefined, error: undefined },
};
/** The members of values that are objects themselves. */
const VALUES = { wait: ["min", "max"], sleep: ["min", "max"], advance: ["unix", "monotonic"], crash: ["entropy", "client", "also", "after"] };

export function checkFile(file) {
  known(file, FILE, "the file");
  if (!file.about?.trim() || !file.source?.trim()) throw new Error("`about` and `source` must say something");
  if (!Array.isArray(file.cases) || file.cases.length === 0) throw new Error("no case was found");
}

/** The verb of each step. */
export function checkCase(found) {
  known(found, CASE, "the case");
  if (typeof found.name !== "string") throw new Error("a case has a name");
  if (!found.refused && !found.script?.length) throw new Error("the script is empty");
  return (found.script ?? []).map((step, n) => checkStep(step, `step ${n + 1}`));
}

function checkStep(step, where) {
  const verbs = Object.keys(step).filter((name) => Object.hasOwn(VERBS, name));
  if (verbs.length !== 1) throw new Error(`${where}: a step has one verb, and this has the members ${Object.keys(step)}`);
  const [verb] = verbs;
  const beside = VERBS[verb];
  known(step, [verb, ...Object.keys(beside)], where);
  for (const [name, members] of Object.entries({ ...beside, [verb]: VALUES[verb] })) {
    const value = step[name];
    if (members && value !== null && typeof value === "object") known(value, members, `${where}, ${name}`);
  }
  const pages = step.pages ?? [];
  if (pages.some((page) => checkStep(page, where) !== "send")) throw new Error(`${where}: a page is a send`);
  return verb;
}

function known(object, members, where) {
  const other = Object.keys(object).find((name) => !members.includes(name));
  if (other !== undefined) throw new Error(`${where}: unknown member \`${other}\``);
}
