// A walk through a list, its pages as the script has them.
import { StepKind, pageParams, pageTurn } from "hopline";

import { fail, like, short } from "./matching.mjs";
import { noSecret } from "./world.mjs";

/** `send` expects the read of a page. */
export function walk(world, name, step, send) {
  const { operation, params = {}, pages = [], items, error } = step;
  let [position, end, failure] = [begin(world, step)];
  const found = [];
  const given = JSON.stringify(params);
  try {
    pageParams(position, given);
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
    found.push(...(JSON.parse(view ?? raw).items ?? []));
    const turn = JSON.parse(pageTurn(position, facts));
    position = turn.position && JSON.stringify(turn.position);
    end = turn.end;
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

function begin(world, { operation, from, position_text, max_pages }) {
  if (from !== undefined && !world.walks.get(from)) fail(`\`${from}\` is no walk to go on from`);
  const text = from === undefined ? (position_text ?? JSON.stringify({ operation })) : world.walks.get(from);
  return max_pages === undefined ? text : JSON.stringify({ ...JSON.parse(text), max_pages });
}
