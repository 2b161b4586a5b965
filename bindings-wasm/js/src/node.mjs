// One copy of the package for `import` and `require`.
export { AgentClient, Core, FolderStore, HoplineError, MemoryStore, OpenSession, StepKind, responseHeaders } from "./node.cjs";
