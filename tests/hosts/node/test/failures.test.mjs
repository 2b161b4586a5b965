// Failures of a runtime's own `fetch` that surely sent nothing: their words as they come, and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";

import { source } from "./lib/source.mjs";

const { failuresOf, inBun, inDeno, inNode } = await source("failures.js");

const caused = (message, cause) => Object.assign(new TypeError("fetch failed"), { cause: typeof cause === "string" ? new Error(cause) : cause, message });
const error = (message, members) => Object.assign(new TypeError(message), members);
const sent = (words) => `error sending request for url (https://127.0.0.1:1/): ${words}`;

test("the failures of each runtime's fetch", () => {
  const rows = [
    [inNode, caused("fetch failed", error("getaddrinfo ENOTFOUND a.invalid", { code: "ENOTFOUND", syscall: "getaddrinfo" })), "dns"],
    [inNode, caused("fetch failed", error("connect ECONNREFUSED", { code: "ECONNREFUSED", syscall: "connect" })), "connect"],
    [inNode, caused("fetch failed", { errors: [error("a", { syscall: "connect" }), error("b", { syscall: "connect" })] }), "connect"],
    [inNode, caused("fetch failed", { errors: [error("a", { syscall: "connect" }), error("b", { syscall: "read" })] }), undefined],
    [inNode, caused("fetch failed", error("bad port", {})), "connect"],
    [inNode, caused("fetch failed", error("self-signed certificate", { code: "DEPTH_ZERO_SELF_SIGNED_CERT" })), "tls"],
    [inNode, caused("fetch failed", error("other side closed", { code: "UND_ERR_SOCKET" })), undefined],
    [inNode, error("fetch failed", {}), undefined],
    [inBun, error("ECONNREFUSED: Unable to connect. Is the computer able to access the url?", { code: "ECONNREFUSED", errno: 0 }), "connect"],
    [inBun, error("getaddrinfo ENOTFOUND a.invalid", { code: "ENOTFOUND", syscall: "getaddrinfo" }), "dns"],
    [inBun, error("self signed certificate", { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }), "tls"],
    [inBun, error("ECONNRESET: The socket connection was closed unexpectedly.", { code: "ECONNRESET" }), undefined],
    [inBun, error("The operation timed out.", { name: "TimeoutError" }), undefined],
    [inDeno, error("Fetch failed: Requests to port 9 are blocked", {}), "connect"],
    [inDeno, caused("fetch failed", sent("client error (Connect): tcp connect error: No route to host (os error 113)")), "connect"],
    [inDeno, caused("fetch failed", sent("client error (Connect): dns error: failed to lookup address information")), "dns"],
    [inDeno, caused("fetch failed", sent("client error (Connect): invalid peer certificate: UnknownIssuer")), "tls"],
    [inDeno, caused("fetch failed", "error sending request from 127.0.0.1:1 for http://127.0.0.1:2/: client error (SendRequest): connection closed before message"), undefined],
    [inDeno, error("fetch failed", {}), undefined],
  ];
  for (const [read, failure, kind] of rows) assert.deepEqual(read(failure), kind && { kind, sent: "never" }, failure.cause?.message ?? failure.message);
});

test("a fetch that was put in the place of a runtime's own may have sent before it fails", () => {
  const own = [function fetch() { return "fetchImpl"; }, Object.defineProperty(Math.max.bind(), "name", { value: "fetch" }), function fetch() { return "lazyFetch()"; }];
  const places = [{}, { Bun: {} }, { Deno: {} }];
  const found = places.map((place) => [...own, async (...given) => own[0](...given), own[0].bind(), undefined].map((fetch) => failuresOf(fetch, place)));
  assert.deepEqual(found, [
    [inNode, undefined, undefined, undefined, undefined, undefined],
    [undefined, inBun, undefined, undefined, undefined, undefined],
    [undefined, undefined, inDeno, undefined, undefined, undefined],
  ]);
});
