// One copy of the package for `import` and `require`.
export { AgentClient, Core, FolderStore, HoplineError, IndexedDBStore, OpenSession, ProxySettings, ResellerClient, Secret, StepKind, Walk, hostText, ipRangeText, isShared, isSharedText, load, meta, needsProjectId, operations, pageParams, pageTurn, parseIpRange, quote, responseHeaders, sessionEvent } from "./node.cjs";
