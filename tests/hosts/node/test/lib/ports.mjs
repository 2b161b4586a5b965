// A port that leads through a session, and its clients: raw sockets and curl.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { promisify } from "node:util";

/** Waits until something is so. */
export async function until(what) {
  const end = Date.now() + 60_000;
  while (!(await what())) {
    assert.ok(Date.now() < end, `not so in a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A connection to a port, which is made by now. */
export async function connected(url, more = {}) {
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), allowHalfOpen: true, ...more });
  await once(socket, "connect");
  // However the connection ends, the test sees what came before.
  socket.on("error", () => {});
  return socket;
}

/** All that comes until the other end has said all, or resets the connection. */
export async function allOf(socket) {
  const parts = [];
  try {
    for await (const part of socket.iterator({ destroyOnReturn: false })) parts.push(part);
  } catch {
    // Reset.
  }
  return Buffer.concat(parts);
}

/** The whole answer to some bytes. */
export async function answer(url, sent) {
  const socket = await connected(url);
  socket.write(sent);
  const got = await allOf(socket);
  socket.destroy();
  return got.toString("latin1");
}

/** A connection to a target through the port. */
export async function tunnel(url, target) {
  const socket = await connected(url);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  let read = "";
  while (!read.endsWith("\r\n\r\n")) {
    const byte = socket.read(1);
    if (byte) read += byte.toString("latin1");
    else await Promise.race(["readable", "close"].map((event) => once(socket, event)));
    assert.ok(byte || !socket.destroyed, read);
  }
  assert.match(read, /^HTTP\/1\.1 200 /);
  return socket;
}

/** A target of one's own. Returns its host and port. */
export async function server(t, serve) {
  const open = new Set();
  const listening = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => {}).once("close", () => open.delete(socket));
    serve(socket);
  }).listen(0, "127.0.0.1");
  t.after(() => {
    for (const socket of open) socket.destroy();
    listening.close();
  });
  await once(listening, "listening");
  return `127.0.0.1:${listening.address().port}`;
}

/** True if nothing listens there any more. */
export function isClosed(url) {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.once("connect", () => resolve(!socket.destroy())).once("error", () => resolve(true));
  });
}

/** The output of curl. */
export async function curl(...words) {
  const { stdout } = await promisify(execFile)("curl", ["--silent", "--show-error", "--max-time", "60", "--noproxy", "", ...words]);
  return stdout;
}
