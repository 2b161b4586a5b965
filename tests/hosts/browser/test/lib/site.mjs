// A site on a port of its own: the pages of this folder and the installed package as plain files, under a content policy.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the package is installed. */
export const PACKAGE = dirname(createRequire(import.meta.url).resolve("hopline/package.json"));
const PAGES = fileURLToPath(new URL("../pages", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".mjs": "text/javascript", ".js": "text/javascript", ".json": "application/json", ".wasm": "application/wasm" };

/** The policy that a page needs; `connect` are further origins that it talks to. */
export function policy(...connect) {
  return `default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src ${["'self'", ...connect].join(" ")}`;
}

/**
 * Serves until the test is over. `folders` are further folders by the beginning of their path, `csp` is the policy, and
 * `answers` has a function `(request, response)` for each path that is answered otherwise.
 */
export async function site(t, { folders = {}, csp = policy(), answers = {} } = {}) {
  const roots = Object.entries({ "/hopline/": PACKAGE, "/": PAGES, ...folders }).sort(([one], [other]) => other.length - one.length);
  const answer = async (request, response) => {
    const path = decodeURIComponent(request.url.split("?", 1)[0]);
    response.setHeader("content-security-policy", csp);
    const own = Object.keys(answers).find((beginning) => path.startsWith(beginning));
    if (own) return answers[own](request, response);
    if (path === "/favicon.ico") return response.writeHead(204).end();
    const [beginning, folder] = roots.find(([beginning]) => path.startsWith(beginning));
    const file = join(folder, path.slice(beginning.length) || "index.html");
    try {
      if (path.includes("..")) throw new Error("is not in the folder");
      const body = await readFile(file);
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404, { "content-type": "text/plain" }).end("not found");
    }
  };
  // A request of a page while its test ends may find no server.
  const server = createServer((request, response) => answer(request, response).catch(() => response.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${server.address().port}`;
}
