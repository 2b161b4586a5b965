// One copy of the package for `import` and `require`.
export { AgentClient, Core, FolderStore, HoplineError, IndexedDBStore, MemoryStore, OpenSession, StepKind, load, operations, responseHeaders } from "./node.cjs";
