#!/usr/bin/env node
// Starts the program for this system, which is in a package of its own, and ends as it does.
"use strict";

const { spawn } = require("node:child_process");

const name = `hopline-sandbox-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/hopline-sandbox`);
} catch {
  console.error(
    `hopline-sandbox: the npm package ${name} is not installed; either there is none for this system, or npm left optional dependencies out (npm install --include=optional)`,
  );
  process.exit(1);
}
const sandbox = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// Whoever ends this process means the sandbox. Ctrl-C reaches both.
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, () => sandbox.kill(signal));
sandbox.on("error", (error) => {
  console.error(`hopline-sandbox: ${program} could not be started: ${error.message}`);
  process.exitCode = 1;
});
sandbox.on("exit", (code) => (process.exitCode = code ?? 1));
