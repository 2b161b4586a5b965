// A client of a folder: does what its parent says, one call after the other, by the clock of its parent.
import { FolderStore } from "hopline";

import { ask } from "../lib/suite.mjs";

let now = Date.now();
const store = new FolderStore(process.env.FOLDER, { now: () => now });

process.on("message", async ({ id, at, method, given, diesAfter }) => {
  now = at ?? now;
  if (diesAfter !== undefined) setTimeout(() => process.kill(process.pid, "SIGKILL"), diesAfter);
  try {
    const answer = method === "close" ? await store.close() : await ask(store, method, ...given);
    process.send({ id, answer: answer ?? null });
  } catch (error) {
    process.send({ id, error: error.stack });
  }
});
