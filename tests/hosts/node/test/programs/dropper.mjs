// Drops a client that holds a session, without closing it, and says whether another client can have it before this program ends.
import { AgentClient, FolderStore } from "hopline";

const client = () => new AgentClient({ store: new FolderStore(process.env.FOLDER) });
const wanted = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };
const buy = async () => (await client().openSession(wanted, { intent: "job-17" })).session_id;

const first = await buy();
const other = client();
let second;
for (const until = Date.now() + 30_000; second === undefined && Date.now() < until; ) {
  globalThis.gc();
  await new Promise((resolve) => setTimeout(resolve, 20));
  second = await other.openSession(wanted, { intent: "job-17" }).then(({ session_id }) => session_id, (error) => (error.kind === "busy" ? undefined : String(error)));
}
await other.close();
console.log(JSON.stringify([first, second]));
