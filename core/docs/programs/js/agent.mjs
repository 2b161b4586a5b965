import { AgentClient } from "hopline";
import { Agent, fetch } from "undici";

const dispatcher = new Agent({ pipelining: 0 });
/** @type {(url: string, init: any) => any} */
const own = (url, init) => fetch(url, { ...init, dispatcher });
const agent = new AgentClient({ fetch: own });
console.log(await agent.getBalance());
await agent.close();
