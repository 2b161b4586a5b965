// The sandbox as a process of its own, which ends with the test.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { AgentClient } from "hopline";

export const WANTED = { session_type: "dynamic", product_no: "dynamic-world", quantity: 1 };

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
    fault: (fault, operation, times = 1) => control("faults", { operation, times, fault }),
    /** A client that is closed with the test. */
    agent(more) {
      const agent = new AgentClient({ apiKey: ready.api_key, baseUrl: ready.agent_url, ...more });
      t.after(() => agent.close());
      return agent;
    },
  };
}

const folders = [];
process.once("exit", () => folders.forEach((path) => rmSync(path, { recursive: true, force: true })));

/** A folder that goes with this process: clients that still use it are closed by then. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "hopline-node-"));
  folders.push(path);
  return path;
}

/** Runs a program of this folder and says how it ended. */
export function program(name, environment, more = []) {
  const child = spawn(process.execPath, [join(fileURLToPath(new URL("../programs", import.meta.url)), name), ...more], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    // Whatever it waits for does not come after a minute.
    timeout: 60_000,
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
