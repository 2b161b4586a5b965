// The sandbox as a process of its own, which ends with the test.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve as resolvePath } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { AgentClient, ResellerClient } from "hopline";

export const WANTED = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };
export const ORDER = { poolId: "static-us", unitPrice: 0, totalAmount: 0, ipCount: 1, cycleTimes: 1, duration: 1, unit: "month" };

export async function sandbox(t, ...options) {
  const child = spawn(process.env.HOPLINE_SANDBOX, ["--with-parent", "--seed", "7", "--provisioning-ms", "0", ...options], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const line = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("error", reject);
  });
  const ready = JSON.parse(line);
  const control = async (path, body) => {
    const answer = await fetch(`${ready.control_url}/${path}`, body && { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };
  return {
    ...ready,
    control,
    state: () => control("state"),
    books: async () => (await control("state")).backend,
    fault: (fault, operation, times = 1) => control("faults", { operation, times, fault }),
    /** Forgets the faults that nothing has met. */
    forgetFaults: () => fetch(`${ready.control_url}/faults`, { method: "DELETE" }),
    /** Every request that came, whatever a fault made of it. */
    requests: async () => (await control("requests")).requests,
    /** Clients that are closed with the test. */
    agent(more) {
      const agent = new AgentClient({ apiKey: ready.api_key, baseUrl: ready.agent_url, ...more });
      t.after(() => agent.close());
      return agent;
    },
    reseller(more) {
      const reseller = new ResellerClient({ ...login(ready), ...more });
      t.after(() => reseller.close());
      return reseller;
    },
  };
}

/** The options of a reseller's client at a sandbox. */
export const login = ({ username, password, backend_url }) => ({ username, password, baseUrl: backend_url });

/** A reseller with a sub-user that can pay, and an order for it. */
export async function shop(t, ...options) {
  const service = await sandbox(t, ...options);
  const reseller = service.reseller();
  const { id } = await reseller.createUser({ username: "ann", password: "canary-ann", email: "canary-ann@example.com", balance: 50 });
  return { service, reseller, wanted: { ...ORDER, userId: id } };
}

const folders = [];
process.once("exit", () => folders.forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A folder that goes with this process: clients that still use it are closed by then. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "hopline-node-"));
  folders.push(path);
  return path;
}

/**
 * Runs a program of this folder, in a working folder of its own where one is given, for a minute at most, and says how it ended. `node` is
 * the command that runs it, with its words before the program.
 */
export function program(name, environment, more = [], cwd = undefined, node = process.execPath, longest = 60_000) {
  const [command, ...words] = [node].flat();
  const child = spawn(command, [...words, resolvePath(fileURLToPath(new URL("../programs", import.meta.url)), name), ...more], {
    env: { ...process.env, ...environment },
    cwd,
    stdio: ["pipe", "pipe", "pipe"],
    // The program is ended after that.
    timeout: longest,
  });
  let out = "";
  let errors = "";
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (errors += text));
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, out, errors }));
  });
  return { child, ended };
}
