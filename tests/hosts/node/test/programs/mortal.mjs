// What dies where it is told to: `POINT` is `keep:2`, `kept:2`, `send:1`, `sent:1`, `read:1`, `was read:1`.
import { FolderStore } from "hopline";

const [point, at] = (process.env.POINT ?? "").split(":");
const seen = {};

function here(name) {
  seen[name] = (seen[name] ?? 0) + 1;
  if (name === point && seen[name] === Number(at)) process.kill(process.pid, "SIGKILL");
}

export class MortalStore extends FolderStore {
  async keep(record, data) {
    here("keep");
    await super.keep(record, data);
    here("kept");
  }
  async remove(record) {
    here("remove");
    await super.remove(record);
  }
}

/** `fetch`, of which the requests that are no `write` are reads. */
export const mortalFetch = (write) => async (url, init) => {
  here(write(url, init) ? "send" : "read");
  const answer = await fetch(url, init);
  // The whole answer is here before the program dies of it.
  const body = await answer.arrayBuffer();
  here(write(url, init) ? "sent" : "was read");
  return new Response(body, { status: answer.status, headers: answer.headers });
};
