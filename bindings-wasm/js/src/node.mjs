// One copy of the package for `import` and `require`.
import { load } from "./node.cjs";

// A bundler that knows this expression puts the file where it is found.
load[Symbol.for("hopline.core")](() => new URL("./node.wasm", import.meta.url));

export { AgentClient, FolderStore, HoplineError, IndexedDBStore, OpenSession, ProxySettings, ResellerClient, Secret, Walk, isShared, load, meta, needsProjectId, operations, parseIpRange, sessionEvent } from "./node.cjs";
