// A page with the runners of Node's tests, where an import map finds the package.
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

import { open, profile } from "./chromium.mjs";
import { policy, site } from "./site.mjs";

const MAP = JSON.stringify({ imports: { hopline: "/hopline/web.mjs" } });
const HTML = `<!doctype html><title>Runners</title><script type="importmap">${MAP}</script><script type="module" src="/runners.mjs"></script>`;

/** The page. The runner of the vectors is in its `vectors`, the judge of texts in its `judge`. */
export async function runner(t) {
  // An import map can only be written into the page, so the policy names it by its digest.
  const csp = policy().replace("script-src", `script-src 'sha256-${createHash("sha256").update(MAP).digest("base64")}'`);
  const url = await site(t, {
    csp,
    folders: { "/runner/": fileURLToPath(new URL("../../../node/test", import.meta.url)) },
    answers: { "/map.html": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end(HTML) },
  });
  return open(await profile(t), `${url}/map.html`);
}
