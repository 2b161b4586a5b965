// One copy of the package for `import` and `require`.
export { AgentClient, FolderStore, HoplineError, IndexedDBStore, OpenSession, ProxySettings, ResellerClient, Secret, Walk, isShared, load, meta, needsProjectId, operations, parseIpRange, sessionEvent } from "./node.cjs";
