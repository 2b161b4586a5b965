// Makes the npm packages: `node pack.mjs FOLDER VERSION LICENCES SYSTEM-ARCHITECTURE=PROGRAM…`, such as `linux-x64=target/…/hopline-sandbox`.
// Each program has a package of its own, and the main package needs whichever fits. Prints the paths of the tarballs, the main one last.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const here = join(root, "tests/sandbox/npm");
const [out, version, licences, ...programs] = process.argv.slice(2);
const folder = resolve(out);
const { bin, files, ...common } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));

/** Packs the files of a package, by their names in it, and prints the path of the tarball. */
function pack(manifest, contents) {
  const place = join(folder, manifest.name);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "package.json"), `${JSON.stringify({ ...common, version, ...manifest }, null, 2)}\n`);
  for (const [name, path] of Object.entries(contents)) cpSync(path, join(place, name));
  cpSync(licences, join(place, "LICENSES.txt"));
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: place, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  console.log(join(folder, JSON.parse(packed)[0].filename));
}

rmSync(folder, { recursive: true, force: true });
const optionalDependencies = {};
for (const given of programs) {
  const [system, program] = given.split("=");
  const [os, cpu] = system.split("-");
  const name = `${common.name}-${system}`;
  optionalDependencies[name] = version;
  chmodSync(program, 0o755);
  pack({ name, description: `hopline-sandbox for ${os} on ${cpu}`, os: [os], cpu: [cpu], files: ["hopline-sandbox", "LICENSES.txt"] }, { "hopline-sandbox": program });
}
pack({ name: common.name, bin, files, optionalDependencies }, { "hopline-sandbox.js": join(here, "hopline-sandbox.js"), "README.md": join(root, "tests/sandbox/README.md") });
