// A client before an odd server, in Node, Bun and Deno: purchases and writes without a key, and what is said of servers that are not there.
import { AgentClient, ResellerClient } from "hopline";

const { odd_url, behaviours, api_key, username, password } = JSON.parse(process.argv[2]);
const WANTED = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };

async function ends(client, work) {
  try {
    return await work();
  } catch ({ kind, effect }) {
    return [kind, effect];
  } finally {
    await client.close();
  }
}

const sold = [];
const work = async (behaviour) => {
  const agent = new AgentClient({ apiKey: api_key, baseUrl: `${odd_url}/${behaviour}.once.writes/v1` });
  sold.push([behaviour, await ends(agent, async () => [(await agent.openSession(WANTED, { intent: behaviour })).session_id, (await agent.openSession(WANTED)).session_id])]);
};
await Promise.all(behaviours.map(work));

const made = [];
for (const behaviour of ["stale", "stale-close", "unasked-408", "close"]) {
  const reseller = new ResellerClient({ username, password, baseUrl: `${odd_url}/${behaviour}/api` });
  made.push(await ends(reseller, async () => {
    for (const n of [1, 2, 3]) {
      // A connection that was used is there when the write begins.
      await reseller.walkSubUsers({ pageSize: 10 })[Symbol.asyncIterator]().next();
      await reseller.createUser({ username: `ann-${behaviour}-${n}`, password: "canary-ann", email: `ann-${behaviour}-${n}@example.com` });
    }
    return "made";
  }));
}

const missed = [];
for (const baseUrl of ["http://127.0.0.1:9/v1", "http://nobody.invalid/v1"]) {
  const agent = new AgentClient({ apiKey: "key", baseUrl, allowHttp: true, retry: { attempts: 1 } });
  missed.push(await ends(agent, () => agent.createSession(WANTED)));
}
console.log(JSON.stringify({ sold, made, missed }));
