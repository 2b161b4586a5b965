// The dashboard against a sandbox of the service on this machine: no account, no money. The program needs Rust and this repository.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const sandbox = spawn("cargo", ["xtask", "sandbox", "--with-parent", ...process.argv.slice(2)], {
  cwd: root,
  stdio: ["pipe", "pipe", "inherit"],
});
sandbox.once("error", (error) => {
  console.error(`dashboard: the sandbox could not be started: ${error.message}`);
  process.exit(1);
});
sandbox.once("exit", (code) => process.exit(code ?? 1));

createInterface(sandbox.stdout).on("line", async (line) => {
  if (!line.startsWith("{")) return console.error(line);
  const { agent_url, api_key, control_url } = JSON.parse(line);
  Object.assign(process.env, { HOPLINE_BASE_URL: agent_url, HOPLINE_API_KEY: api_key });
  console.log(`the sandbox takes faults at ${control_url}/faults; see tests/sandbox/README.md`);
  await import("./server.mjs");
});
