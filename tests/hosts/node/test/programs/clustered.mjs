// Two workers of a cluster, as of PM2, with a store in one folder: prints what each is answered when it claims a name, and the other
// once the first was killed.
import cluster from "node:cluster";
import { once } from "node:events";

import { FolderStore } from "hopline";

const NAME = `5e.i${"1".padStart(32, "0")}`;

if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  const claim = async (worker) => {
    worker.send("claim");
    const [answer] = await once(worker, "message");
    return answer;
  };
  // A message that comes before a worker listens is lost.
  await Promise.all(workers.map((worker) => once(worker, "message")));
  const told = [await claim(workers[0]), await claim(workers[1])];
  workers[0].process.kill("SIGKILL");
  await once(workers[0], "exit");
  told.push(await claim(workers[1]));
  console.log(JSON.stringify(told));
  workers[1].kill();
} else {
  const store = new FolderStore(process.env.FOLDER);
  process.on("message", () => store.claim([NAME], 1).then(({ claimed }) => process.send(claimed ? "claimed" : "busy"), (error) => process.send(error.message)));
  process.send("ready");
}
