// The odd server before a sandbox, and the proxies that all hosts share; see `tests/peers`.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Ends with the test. */
export async function peers(t, service) {
  const child = spawn(process.env.HOPLINE_PEERS, ["--service", new URL(service.agent_url).origin], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const ready = JSON.parse(await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("error", reject);
  }));
  const recorded = async () => (await fetch(ready.control_url)).json();
  return { ...ready, recorded, forget: () => fetch(ready.control_url, { method: "DELETE" }) };
}

const REFUSED = /^the proxy refused/;
/** By proxy: what the advice comes to on what a client met through it, the second time in a row where it waits in vain. */
export const ADVICE = {
  right: /^keep$/,
  refuses_login: REFUSED,
  forbids: REFUSED,
  bad_request: REFUSED,
  bad_gateway: /^the target failed/,
  // A connection that breaks off may be either's, and undici 6 does not tell of it at all.
  closes: /^(the proxy refused|the failure may be|one timeout)/,
  hangs: /^timeout$/,
  dead: REFUSED,
};

/** The proxy of this kind and name, as a session has it. */
export function proxyOf(ready, kind, name, login = { username: "user", password: "word" }) {
  const [host, port] = ready[kind][name].split(":");
  return { host, port: Number(port), protocol: kind, ...login };
}
