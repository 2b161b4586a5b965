// A walk through a list, its pages as the script has them.
import { StepKind, hostText, pageParams, pageTurn } from "../lib/core.mjs";

import { fail, like, short } from "./matching.mjs";
import { noSecret } from "./world.mjs";

/** `send` expects the read of a page. */
export function walk(world, name, step, send) {
  const { operation, params = {}, pages = [], items, error } = step;
  const asked = JSON.stringify({ operation, position: beginning(world, step), max_pages: step.max_pages });
  const found = [];
  const given = JSON.stringify(params);
  let position, end, failure;
  try {
    ({ position } = JSON.parse(hostText("walk", asked)));
  } catch (refused) {
    failure = refused;
  }
  for (const page of pages) {
    if (failure !== undefined || end !== undefined) fail(`expected a read of ${page.send}, and the walk is over: ${end} ${short(failure)}`);
    const command = world.client.start(operation, pageParams(position, given), "{}");
    send(page);
    const came = world.next();
    if (came !== StepKind.Completed || world.client.command !== command) fail(`expected the end of a page, came ${world.show(came)}`);
    const [how, facts, raw, , view] = world.client.take(command);
    if (how === "failed") {
      failure = facts;
      continue;
    }
    const turn = JSON.parse(pageTurn(position, facts));
    ({ position, end } = turn);
    if (end !== "repeated_page") found.push(...(JSON.parse(view ?? raw).items ?? []));
  }
  if ((failure === undefined) !== (error === undefined)) fail(`expected the error ${short(error)}, came ${short(failure)}`);
  if (failure !== undefined) {
    noSecret("an error", JSON.stringify(failure));
    like(error, world.named(failure), "error");
  }
  if (step.end !== end) fail(`expected the end ${step.end}, came ${end}`);
  if (items !== undefined) like(items, found, "items");
  if (world.walks.has(name)) fail(`a walk is named \`${name}\` already`);
  world.walks.set(name, position);
}

function beginning(world, { from, position_text }) {
  if (from === undefined) return position_text;
  return world.walks.get(from) ?? fail(`\`${from}\` is no walk to go on from`);
}
