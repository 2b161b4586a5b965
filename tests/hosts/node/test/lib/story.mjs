// How a story is told: aligned rows, and in the end what each of its steps took and cost. A page's story is told by it, too.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

/** The requests that were made. */
export const { story, seed } = parseArgs({ options: { story: { type: "string", default: "life" }, seed: { type: "string", default: "7" } } }).values;
if (!["life", "reseller"].includes(story)) {
  console.error(`there is no story \`${story}\`; there are life and reseller`);
  process.exit(1);
}

export const row = (label, text) => console.log(`  ${label.padEnd(11)}${text}`);
export const usd = (amount) => amount.toFixed(2);

/** A sandbox that goes with this process, and what is asked of its control. */
export async function stage() {
  const sandbox = spawn(process.env.HOPLINE_SANDBOX, ["--with-parent", "--seed", seed], { stdio: ["pipe", "pipe", "inherit"] });
  process.once("exit", () => sandbox.kill());
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  const ready = JSON.parse(await new Promise((resolve, reject) => {
    createInterface(sandbox.stdout).once("line", resolve);
    sandbox.once("error", reject);
  }));
  const control = (path, body) => fetch(`${ready.control_url}/${path}`, body && { method: "POST", body: JSON.stringify(body) }).then((answer) => answer.json());
  return { ...ready, control };
}

/** The steps of a story. `read` gives whose balances there are, by their names; a cost is what all of them have less by then. */
export class Steps {
  #read;
  #steps = [];
  balances;

  constructor(read) {
    this.#read = read;
  }

  async begin() {
    return (this.balances = await this.#read());
  }

  /** Does a step, and reads what it cost. */
  async step(name, work) {
    const began = performance.now();
    const done = await work();
    const time = performance.now() - began;
    const before = sum(this.balances);
    await this.begin();
    this.#steps.push({ name, time, cost: before - sum(this.balances), balances: this.balances });
    return done;
  }

  table() {
    const names = Object.keys(this.balances);
    console.log(`\n  ${"step".padEnd(11)}${"time".padStart(8)}${"cost USD".padStart(12)}${names.map((name) => `${name} USD`.padStart(14)).join("")}`);
    for (const { name, time, cost, balances } of this.#steps) {
      const amounts = names.map((name) => usd(balances[name]).padStart(14)).join("");
      console.log(`  ${name.padEnd(11)}${`${(time / 1000).toFixed(2)} s`.padStart(8)}${usd(cost).padStart(12)}${amounts}`);
    }
  }
}

function sum(balances) {
  return Object.values(balances).reduce((one, other) => one + other, 0);
}
