// The requirements of every store: the cases of tests/store, whose README says what their words mean. Nothing here is of one host.

const NOW = 1750000000000;
const STEPS = {
  claim: ["as", "most", "answer"], put: ["as", "data", "new", "release", "keep_for", "dies", "answer"], delete: ["as", "answer"], release: ["as", "answer"],
  list: ["as", "after", "open", "answer"], spend: ["as", "space", "amount", "cap", "day", "answer"], fill: ["as", "data", "release", "keep_for"],
  close: [], die: [], now: [], damage: ["how"], end_claims: [],
};

/**
 * Runs all cases of all files. `begin` gives the stage of a case, an empty store: `open()` a client, `set(now)` the clock, and what is
 * named in `can` of what not every runner can do. Says which failed.
 */
export async function runSuite(files, can, begin) {
  const failures = [];
  let [cases, left] = [0, 0];
  const run = async ([file, { cases: found }]) => {
    for (const each of found) {
      if (each.needs?.some((need) => !can.includes(need))) {
        left += 1;
        continue;
      }
      cases += 1;
      const stage = await begin(each);
      try {
        await runCase(each, stage);
      } catch (error) {
        failures.push(`${file}: \`${each.name}\`: ${error.message}`);
      } finally {
        await stage.end();
      }
    }
  };
  await Promise.all(files.map(run));
  return { cases, failures, text: `store: ${cases} cases, ${failures.length} failed, ${left} left out: they need what this runner can't do` };
}

async function runCase({ steps }, stage) {
  const clients = new Map();
  await stage.set(NOW);
  for (const [n, step] of steps.entries()) {
    const verb = Object.keys(step).find((name) => name in STEPS);
    const unknown = Object.keys(step).find((name) => name !== verb && !STEPS[verb]?.includes(name));
    if (!verb || unknown) throw new Error(`step ${n + 1}: not a step that this runner knows: ${JSON.stringify(step)}`);
    if (step.as && !clients.has(step.as)) clients.set(step.as, await stage.open());
    try {
      await DO[verb](step, stage, clients);
    } catch (error) {
      throw new Error(`step ${n + 1} (${verb}): ${error.message}`);
    }
  }
  for (const client of clients.values()) await client.close();
}

const how = ({ new: isNew, release, keep_for }) => ({ new: isNew, release, keepFor: keep_for });

async function call(step, clients, method, ...given) {
  equal(step.answer, await clients.get(step.as).call(method, ...given));
}

const DO = {
  claim: (step, _, clients) => call(step, clients, "claim", step.claim, step.most),
  delete: (step, _, clients) => call(step, clients, "delete", step.delete),
  release: (step, _, clients) => call(step, clients, "release", step.release === "all" ? undefined : step.release),
  list: (step, _, clients) => call(step, clients, "list", step.list, { after: step.after, open: step.open }),
  spend: (step, _, clients) => call(step, clients, "spend", step.space, { day: step.day, entry: step.spend, amount: step.amount, cap: step.cap }),
  async put(step, stage, clients) {
    if (!step.dies) return call(step, clients, "put", step.put, step.data, how(step));
    await clients.get(step.as).dieDuring("put", step.put, step.data, how(step));
    clients.delete(step.as);
  },
  async fill({ as, fill: { space, kind, first, count }, data, ...more }, stage, clients) {
    const names = Array.from({ length: count }, (_, n) => `${space}.${kind}${(first + n).toString(16).padStart(32, "0")}`);
    const told = await clients.get(as).call("fill", names, data, how({ ...more, new: true }));
    equal("done", told);
  },
  async close({ close }, stage, clients) {
    await clients.get(close).close();
    clients.delete(close);
  },
  async die({ die }, stage, clients) {
    await clients.get(die).die();
    clients.delete(die);
  },
  now: ({ now }, stage) => stage.set(now),
  damage: ({ damage, how }, stage) => stage.damage(damage, how),
  end_claims: ({ end_claims }, stage, clients) => stage.endClaims(clients.get(end_claims)),
};

const text = (data) => (data == null ? null : new TextDecoder().decode(data));

/** Asks a store, in the words of the cases: data is text. */
export async function ask(store, method, ...given) {
  if (method === "put") given[1] = new TextEncoder().encode(given[1]);
  if (method === "fill") {
    const [names, data, more] = given;
    for (const name of names) {
      const told = await ask(store, "put", name, data, more);
      if (told !== "done") return `${name}: ${told}`;
    }
    return "done";
  }
  const told = await store[method](...given);
  if (method === "release") return "done";
  if (typeof told === "string") return told;
  if (told.claimed) return { claimed: Object.fromEntries([...told.claimed].map(([name, data]) => [name, text(data)])) };
  if ("busy" in told) return { busy: text(told.busy) };
  if (told.entries) return { entries: told.entries.map(({ name, data, whose }) => ({ name, data: text(data), whose })), more: told.more };
  return told;
}

function equal(expected, came) {
  if (!isLike(expected, came)) throw new Error(`expected ${short(expected)}, came ${short(came)}`);
}

function isLike(expected, came) {
  if (typeof expected === "string") return came === expected;
  const [of] = Object.keys(expected);
  switch (of) {
    case "claimed":
      return hasAll(came.claimed, expected.claimed) && Object.keys(came.claimed).length === Object.keys(expected.claimed).length;
    case "claimed_count":
      return came.claimed && Object.keys(came.claimed).length === expected.claimed_count && hasAll(expected.of, came.claimed, (each, data) => isData(data, each));
    case "busy":
      return "busy" in came && isData(expected.busy, came.busy);
    case "entries":
      return came.more === expected.more && came.entries?.length === expected.entries.length && expected.entries.every(({ name, data, whose }, n) => {
        const entry = came.entries[n];
        return entry.name === name && entry.whose === whose && isData(data, entry.data);
      });
    case "count":
      return came.more === expected.more && came.entries.length === expected.count && came.entries[0].name === expected.first && came.entries.at(-1).name === expected.last;
    case "granted":
      return came.granted === expected.granted;
    case "over":
      return came.day === expected.day && typeof came.over === "string" && digits(came.over) === digits(expected.over);
    default:
      throw new Error(`not an answer that this runner knows: ${short(expected)}`);
  }
}

/** Returns true if each name of `wanted` is in `found`, with like data. */
function hasAll(found, wanted, like = (data, each) => isData(each, data)) {
  return found !== undefined && Object.entries(wanted).every(([name, each]) => Object.hasOwn(found, name) && like(found[name], each));
}

function isData(expected, came) {
  if (expected === null || typeof expected === "string") return came === expected;
  if (expected.one_of) return expected.one_of.some((each) => isData(each, came));
  try {
    JSON.parse(came);
    return false;
  } catch {
    return came !== null;
  }
}

/** A decimal without zeros that say nothing. */
const digits = (decimal) => (decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal);

const short = (value) => (JSON.stringify(value) ?? "nothing").slice(0, 600);
