// The package for Node with its core within.
const hopline = require("./node.cjs");
const core = require("./inline-core.cjs");

hopline.load[Symbol.for("hopline.core")](() => process.getBuiltinModule("node:zlib").brotliDecompressSync(Buffer.from(core, "base64")));

module.exports = hopline;
