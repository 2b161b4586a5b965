// One copy of the package for `import` and `require`.
export { AgentClient, Core, FolderStore, HoplineError, IndexedDBStore, MemoryStore, OpenSession, ProxySettings, StepKind, Walk, load, misfit, operations, pageParams, pageTurn, quote, responseHeaders, sessionEvent } from "./node.cjs";
