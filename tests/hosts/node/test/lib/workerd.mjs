// A Worker in workerd, the program that Cloudflare's Workers run in.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { tool } from "./tools.mjs";

/**
 * Serves the modules of a folder, of which the first is the Worker, with texts in its environment, and returns its address. A module that ends in
 * `.wasm` is compiled by workerd.
 */
export async function worker(t, place, modules, environment, flags = []) {
  const list = modules.map((name) => `(name = "${name}", ${name.endsWith(".wasm") ? "wasm" : "esModule"} = embed "${name}")`);
  const bindings = Object.entries(environment).map(([name, value]) => `(name = "${name}", text = ${JSON.stringify(value)})`);
  const config = `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [ (name = "main", worker = .own), (name = "internet", network = (allow = ["public", "private", "local"])) ],
      sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ] );
    const own :Workerd.Worker = (
      modules = [ ${list.join(", ")} ], compatibilityDate = "2025-01-01", compatibilityFlags = ${JSON.stringify(flags)},
      bindings = [ ${bindings.join(", ")} ] );`;
  writeFileSync(join(place, "config.capnp"), config);
  const { default: workerd } = tool("workerd");
  const child = spawn(workerd, ["serve", "config.capnp", "--control-fd=1"], { cwd: place, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const port = await new Promise((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      const told = JSON.parse(line);
      if (told.event === "listen") resolve(told.port);
    });
    child.once("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
  });
  return `http://127.0.0.1:${port}`;
}
