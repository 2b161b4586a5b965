// The exports of the package in every environment.
import { agentOperations, resellerOperations } from "../gen/operations.js";
import { ask } from "./ask.js";

export { AgentClient } from "./agent.js";
export { meta } from "./answers.js";
export { HoplineError } from "./error.js";
export { Walk } from "./pages.js";
export { ProxySettings } from "./proxy.js";
export { ResellerClient, isShared, needsProjectId, parseIpRange } from "./reseller.js";
export { Secret } from "./secret.js";
export { OpenSession } from "./session.js";

/** The requests of each method of either client. hopline.d.ts documents it. */
export const operations = /* @__PURE__ */ Object.assign({}, agentOperations, resellerOperations);

/** An observation through a session, as an object for `reportSessionEvent`. hopline.d.ts documents it. */
export const sessionEvent = (facts) => ask("session_event", { facts });

/** The choice of the cheapest product that fits. hopline.d.ts documents it. */
export function cheapest({ type, projectId, maxUnitPrice, ...rest } = {}) {
  const given = { session_type: type, ...rest, project_id: projectId, max_unit_price: maxUnitPrice };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
