// A program that dies where it is told to: `POINT` is `claim:1`, `claimed:1`, `put:2`, `was put:2`, `send:1`, `sent:1`, `read:1`, `was read:1`.
import { FolderStore } from "hopline";

const [point, at] = (process.env.POINT ?? "").split(":");
const seen = {};

function here(name) {
  seen[name] = (seen[name] ?? 0) + 1;
  if (name === point && seen[name] === Number(at)) process.kill(process.pid, "SIGKILL");
}

export class MortalStore extends FolderStore {
  async claim(...given) {
    here("claim");
    const told = await super.claim(...given);
    here("claimed");
    return told;
  }
  async put(...given) {
    here("put");
    const told = await super.put(...given);
    here("was put");
    return told;
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
