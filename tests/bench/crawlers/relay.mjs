// proxy-chain as its people use it: a port without a login before a proxy with one, whose URL is the argument.

import { Server } from "proxy-chain";

const upstreamProxyUrl = process.argv[2];
const server = new Server({ port: 0, host: "127.0.0.1", prepareRequestFunction: () => ({ upstreamProxyUrl }) });
await server.listen();
console.log(`http://127.0.0.1:${server.port}`);
process.stdin.resume().on("end", () => process.exit());
