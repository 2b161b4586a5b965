// The story of a site that blocks an exit after so many requests, told by the requests that it saw.
import assert from "node:assert/strict";

/**
 * Asserts that no request went through an exit after its block, that each block brought one rotation, and that three sessions were bought.
 * Returns the requests that were blocked.
 */
export async function eachBlockChangedItsExit(service, came) {
  const blocked = came.filter(({ status }) => status === 403);
  for (const exit of new Set(came.map((visit) => visit.exit))) {
    const last = came.findLast((visit) => visit.exit === exit);
    assert.ok(blocked.every((visit) => visit.exit !== exit || visit === last), "a request went through an exit that was blocked");
  }
  const until = Date.now() + 60_000;
  const rotations = async () => (await service.state()).sessions.reduce((sum, session) => sum + session.rotations, 0);
  while ((await rotations()) < blocked.length && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual([await rotations(), blocked.length > 0, (await service.state()).charges.length], [blocked.length, true, 3]);
  return blocked;
}
