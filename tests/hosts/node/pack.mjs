// Makes the npm package: `node pack.mjs FOLDER`. Everything generated is in bindings-wasm/js/gen by then. Prints the
// path of the tarball.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, deflateRawSync } from "node:zlib";

import { build } from "esbuild";
import { minify } from "terser";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const js = join(root, "bindings-wasm/js");
const out = resolve(process.argv[2]);
const folder = join(out, "package");

rmSync(out, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

/** Puts a core into the package, with a mark in it, and returns the mark: a script takes no core but its own. */
function marked(from, to) {
  const bytes = readFileSync(join(js, from));
  const mark = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const content = Buffer.from(`\x07hopline${mark}`);
  // A custom section, of fewer bytes than 128.
  writeFileSync(join(folder, to), Buffer.concat([bytes, Buffer.from([0, content.length]), content]));
  return { HOPLINE_CORE: JSON.stringify(mark) };
}
const [ofPages, ofNode] = [marked("gen/hopline_wasm_bg.wasm", "core.wasm"), marked("gen/pools/hopline_wasm_bg.wasm", "node.wasm")];

const common = { bundle: true, logLevel: "error", charset: "utf8" };
/** Node's core has pools, a page's has not. */
const withPools = {
  name: "with-pools",
  setup: ({ onResolve }) => onResolve({ filter: /gen\/hopline_wasm\.js$/ }, () => ({ path: join(js, "gen/pools/hopline_wasm.js") })),
};
/** Node's own modules, got so that a bundler that makes a module of this script leaves no `require` in it, which would fail there. */
const builtin = {
  name: "builtin",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: "builtin" }));
    onLoad({ filter: /^/, namespace: "builtin" }, ({ path }) => ({ contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});` }));
  },
};
const node = { ...common, format: "cjs", platform: "node", target: "node20", external: ["undici", "@opentelemetry/api", "pg", "@crawlee/core", "crawlee", "hopline"] };
await build({ ...node, entryPoints: [join(js, "src/node.js")], inject: [join(js, "src/globals.js")], define: ofNode, outfile: join(folder, "node.cjs"), plugins: [withPools, builtin] });
/** The entries beside the client. */
const ENTRIES = ["opentelemetry", "backend", "crawlee", "playwright", "postgres"];
for (const name of ENTRIES) await build({ ...node, entryPoints: [join(js, "src", `${name}.js`)], outfile: join(folder, `${name}.cjs`) });

/** The names that the shared part of what a page loads, and the part that is loaded with the core, have. */
const CHUNKS = { chunk: "shared", rest: "rest" };
await build({
  ...common, entryPoints: { web: join(js, "src/web.js") }, outdir: folder, outExtension: { ".js": ".mjs" }, chunkNames: "[name]", splitting: true, format: "esm", target: "es2022", sourcemap: "external",
  define: ofPages,
});
await build({ ...common, entryPoints: [join(js, "src/edge.js")], outfile: join(folder, "edge.mjs"), format: "esm", target: "es2022", external: ["*.wasm?module"], sourcemap: "external", define: ofPages });
for (const name of ["web", "chunk", "rest", "edge"]) await shrink(name);

/**
 * Makes a file small, and keeps its map. A class keeps its name, and what has no side effect is still said to have none, so that a bundler leaves
 * out what a page does not use (esbuild, when it minifies, does not say it any more).
 */
async function shrink(name) {
  const [from, to] = [name, CHUNKS[name] ?? name].map((name) => join(folder, `${name}.mjs`));
  const long = readFileSync(from, "utf8").replaceAll(/(["'])\.\/chunk\.mjs\1/g, '"./shared.mjs"');
  const content = JSON.parse(readFileSync(`${from}.map`, "utf8"));
  for (const path of [from, `${from}.map`]) rmSync(path);
  content.sources = content.sources.map((path) => relative(js, resolve(folder, path)));
  // Rollup warns of some that do not stand where it expects them. All that is loaded with the core is used.
  const format = { ecma: 2020, preserve_annotations: name !== "rest" };
  const sourceMap = { content, url: `${CHUNKS[name] ?? name}.mjs.map`, includeSources: true };
  const exported = (/^export \{([^}]*)\};$/m.exec(long)?.[1] ?? "").split(",").map((name) => name.split(" ").at(-1).trim());
  const { code, map } = await minify(long, { module: true, keep_classnames: true, mangle: { reserved: exported.filter((name) => /^[A-Z]/.test(name)) }, compress: { passes: 3, inline: 1 }, format, sourceMap });
  writeFileSync(to, code);
  writeFileSync(`${to}.map`, map);
}

const written = readFileSync(join(js, "hopline.d.ts"), "utf8");
const printed = readFileSync(join(js, "gen/operations.d.ts"), "utf8");
for (const name of ["hopline.d.mts", "hopline.d.cts"]) writeFileSync(join(folder, name), written + printed);

for (const name of ["inline.mjs", "inline-node.mjs", "inline-node.cjs"]) cpSync(join(js, "src", name), join(folder, name));
// A module of Node does not see each name that a script exports by itself.
const names = Object.keys(createRequire(import.meta.url)(join(folder, "node.cjs"))).sort();
for (const name of ["node.mjs", "bun.mjs"]) {
  const source = readFileSync(join(js, "src", name), "utf8");
  writeFileSync(join(folder, name), source.replace(/\/\/ pack.*\nexport \*/, `export { ${names.join(", ")} }`));
}
// The cores as text, compressed by what can be undone where they are used.
const inline = (name, bytes) => writeFileSync(join(folder, name), `${name.endsWith("cjs") ? "module.exports =" : "export default"} "${bytes.toString("base64")}";\n`);
inline("inline-core.mjs", deflateRawSync(readFileSync(join(folder, "core.wasm")), { level: 9 }));
inline("inline-core.cjs", brotliCompressSync(readFileSync(join(folder, "node.wasm"))));
for (const name of ENTRIES) {
  cpSync(join(js, `src/${name}.mjs`), join(folder, `${name}.mjs`));
  for (const kind of ["d.mts", "d.cts"]) cpSync(join(js, `${name}.d.ts`), join(folder, `${name}.${kind}`));
  // Where "exports" is not known, such as by TypeScript's old resolution.
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, "package.json"), `{ "main": "../${name}.cjs", "types": "../${name}.d.cts" }\n`);
}
mkdirSync(join(folder, "inline"));
writeFileSync(join(folder, "inline/package.json"), '{ "main": "../inline-node.cjs", "types": "../hopline.d.cts" }\n');
for (const kind of ["d.ts", "d.cts"]) cpSync(join(js, "core.wasm.d.ts"), join(folder, `core.wasm.${kind}`));
// The class that drives the core itself is no part of the package; its tests need it.
cpSync(join(js, "gen/hopline_wasm.js"), join(out, "core.js"));
cpSync(join(js, "gen/pools/hopline_wasm.js"), join(out, "node-core.js"));
// The tables of a PostgresStore are the same for all hosts.
for (const name of ["bindings-python/python/hopline/postgres.sql", "bindings-wasm/js/package.json", "bindings-wasm/README.md", "bindings-wasm/js/gen/LICENSES.txt"]) {
  cpSync(join(root, name), join(folder, name.split("/").at(-1)));
}
const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", out], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
const told = JSON.parse(packed);
console.log(join(out, (Array.isArray(told) ? told[0] : Object.values(told)[0]).filename));
