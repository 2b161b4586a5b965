// The vectors as they lie on the disk.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Every file of `HOPLINE_VECTORS`: its name and its JSON. */
export function files() {
  const folder = process.env.HOPLINE_VECTORS;
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".json")).sort();
  return names.map((name) => [name, JSON.parse(readFileSync(join(folder, name), "utf8"))]);
}
