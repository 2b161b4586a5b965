// The package for pages with its core within.
import core from "./inline-core.mjs";
import { load } from "./web.mjs";

load[Symbol.for("hopline.core")](async () => {
  const packed = Uint8Array.from(atob(core), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
});

export * from "./web.mjs";
