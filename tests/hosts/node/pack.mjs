// Makes the npm package: `node pack.mjs FOLDER`. Everything generated is in bindings-wasm/js/gen by then. Prints the
// path of the tarball.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { minify } from "terser";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const js = join(root, "bindings-wasm/js");
const out = resolve(process.argv[2]);
const folder = join(out, "package");

rmSync(out, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const common = { bundle: true, logLevel: "error", charset: "utf8" };
/** Node's core has pools, a page's has not. */
const withPools = {
  name: "with-pools",
  setup: ({ onResolve }) => onResolve({ filter: /gen\/hopline_wasm\.js$/ }, () => ({ path: join(js, "gen/pools/hopline_wasm.js") })),
};
const node = { ...common, format: "cjs", platform: "node", target: "node20", external: ["undici", "@opentelemetry/api"] };
await build({ ...node, entryPoints: [join(js, "src/node.js")], inject: [join(js, "src/globals.js")], outfile: join(folder, "node.cjs"), plugins: [withPools] });
/** The entries beside the client. */
const ENTRIES = ["opentelemetry", "backend"];
for (const name of ENTRIES) await build({ ...node, entryPoints: [join(js, "src", `${name}.js`)], outfile: join(folder, `${name}.cjs`) });
// The file for pages is small, and read through its map. A class keeps its name, and what has no side effect is still said to
// have none, so that a bundler leaves out what a page does not use (esbuild, when it minifies, does not say it any more).
const web = join(folder, "web.mjs");
await build({ ...common, entryPoints: [join(js, "src/web.js")], outfile: web, format: "esm", target: "es2022", sourcemap: "external" });
const [long, content] = [readFileSync(web, "utf8"), JSON.parse(readFileSync(`${web}.map`, "utf8"))];
content.sources = content.sources.map((path) => relative(js, resolve(folder, path)));
const format = { ecma: 2020, preserve_annotations: true };
const sourceMap = { content, url: "web.mjs.map", includeSources: true };
const exported = /^export \{([^}]*)\};$/m.exec(long)[1].split(",").map((name) => name.split(" ").at(-1).trim());
const { code, map } = await minify(long, { module: true, keep_classnames: true, mangle: { reserved: exported.filter((name) => /^[A-Z]/.test(name)) }, compress: { passes: 3, inline: 1 }, format, sourceMap });
writeFileSync(web, code);
writeFileSync(`${web}.map`, map);

const written = readFileSync(join(js, "hopline.d.ts"), "utf8");
const printed = readFileSync(join(js, "gen/operations.d.ts"), "utf8");
for (const name of ["hopline.d.mts", "hopline.d.cts"]) writeFileSync(join(folder, name), written + printed);

cpSync(join(js, "gen/hopline_wasm_bg.wasm"), join(folder, "core.wasm"));
cpSync(join(js, "gen/pools/hopline_wasm_bg.wasm"), join(folder, "node.wasm"));
cpSync(join(js, "src/node.mjs"), join(folder, "node.mjs"));
for (const name of ENTRIES) {
  cpSync(join(js, `src/${name}.mjs`), join(folder, `${name}.mjs`));
  for (const kind of ["d.mts", "d.cts"]) cpSync(join(js, `${name}.d.ts`), join(folder, `${name}.${kind}`));
  // Where "exports" is not known, such as by TypeScript's old resolution.
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, "package.json"), `{ "main": "../${name}.cjs", "types": "../${name}.d.cts" }\n`);
}
// The class that drives the core itself is no part of the package; its tests need it.
cpSync(join(js, "gen/hopline_wasm.js"), join(out, "core.js"));
cpSync(join(js, "gen/pools/hopline_wasm.js"), join(out, "node-core.js"));
for (const name of ["bindings-wasm/js/package.json", "bindings-wasm/README.md", "LICENSE-MIT", "LICENSE-APACHE"]) {
  cpSync(join(root, name), join(folder, name.split("/").at(-1)));
}
const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", out], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
const told = JSON.parse(packed);
console.log(join(out, (Array.isArray(told) ? told[0] : Object.values(told)[0]).filename));
