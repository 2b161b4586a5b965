// How Node and the browser measure: contenders take turns.

/** Milliseconds that the work took, once: for each contender those of each round. */
export async function rounds(contenders, once) {
  const times = contenders.map(() => []);
  // The first rounds warm up: the engine compiles what runs often.
  const warm = once ? 0 : 5;
  for (let round = 0; round < warm + (once ? 1 : 25); round++) {
    for (const [index, work] of contenders.entries()) {
      const begun = performance.now();
      let done = 0;
      let took = 0;
      do {
        await work();
        done++;
        took = performance.now() - begun;
      } while (!once && took < 5);
      if (round >= warm) times[index].push((took * 1000) / done);
    }
  }
  return times;
}

/** Lines of the table: the first contender beside each of the others. */
export function rows(work, [own, ...others], named) {
  return named.map(([what, goal], index) => ({ work, figures: own, unit: "µs", goal, beside: { what, figures: others[index] } }));
}

const BOUGHT = '{"success":true,"data":{"session_id":"ses_1","session_type":"dynamic","status":"active"}}';

/** The answers, from memory. */
export const answering = (body) => async () => new Response(body, { status: 200, headers: { "content-type": "application/json" } });

export const account = { apiKey: "key", baseUrl: "https://api.example/v1" };

/** Puts so many records, many at once: most of the time is the disk's. */
async function fill(store, size) {
  const data = new Uint8Array(600).fill(120);
  const spread = (number) => ((BigInt(number) + 1n) * 0x9e3779b97f4a7c15n % (1n << 64n)).toString(16).padStart(16, "0");
  const put = (number) => store.put(`5e.r${spread(number)}${number.toString(16).padStart(16, "0")}`, data, { new: true, release: true });
  const width = 32;
  for (let first = 0; first < size; first += width) await Promise.all(Array.from({ length: Math.min(width, size - first) }, (_, n) => put(first + n)));
  await store.close();
}

/** A purchase with an intent, beside the records of others in the same store. `open` makes one from its number. */
export async function purchases(AgentClient, place, open, once) {
  const sizes = [0, 10_000, 100_000].map((many) => (once ? Math.min(many, 8) : many));
  const agents = [];
  for (const [index, size] of sizes.entries()) {
    await fill(open(index), size);
    agents.push(new AgentClient({ ...account, fetch: answering(BOUGHT), store: open(index) }));
  }
  let count = 0;
  const buy = (agent) => async () => {
    const session = await agent.createSession({ session_type: "dynamic", product_no: "dynamic-world" }, { intent: `bought-${count++}` });
    if (session.session_id !== "ses_1") throw new Error("it was not bought");
  };
  const [none, ...others] = await rounds(agents.map(buy), once);
  await Promise.all(agents.map((agent) => agent.close()));
  const spaced = (many) => many.toLocaleString("en").replaceAll(",", " ");
  const row = (figures, index) => ({
    work: `a purchase with an intent, beside ${spaced(sizes[index + 1])} records in ${place}`,
    figures,
    unit: "µs",
    goal: 1.3,
    beside: { what: "beside 0", figures: none },
  });
  return others.map(row);
}
