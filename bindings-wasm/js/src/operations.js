import { agentOperations, resellerOperations } from "../gen/operations.js";

/** What each method of either client sends. hopline.d.ts documents it. */
export const operations = /* @__PURE__ */ Object.assign({}, agentOperations, resellerOperations);
