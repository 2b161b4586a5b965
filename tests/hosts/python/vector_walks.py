"""A walk through a list, its pages as the script of a vector has them."""

import json
from typing import Any

from hopline._hopline import page_params, page_turn
from vector_format import Json, check, like, no_secret, same


def walk(world: Any, step: Json) -> str | None:
    """Reads the pages of a walk; returns where it stopped."""
    position, end, items, failure = _begin(world, step), None, [], None
    params = json.dumps(step.get("params", {}))
    try:
        page_params(position, params)
    except ValueError as refused:
        failure = str(refused)
    for page in step.get("pages", []):
        check(failure is None and end is None, f"expected a read of {page['send']}, and the walk is over: {end} {failure}")
        command = world.client.start(step["operation"], page_params(position, params), "{}")
        world.send(page)
        same(["completed", command], list(world.next()), "a page")
        taken = world.client.take(command)
        if taken is not None and taken[0] == "answered":
            items += json.loads(taken[4] or taken[2]).get("items") or []
            turn = json.loads(page_turn(position, taken[1]))
            position, end = json.dumps(turn["position"]) if "position" in turn else None, turn.get("end")
        else:
            failure = str(taken and taken[1])
    check(("error" in step) == (failure is not None), f"expected the error {step.get('error')}, came {failure}")
    if failure is not None:
        no_secret("an error", failure)
        like(step["error"], world.named(json.loads(failure)), "error")
    same(step.get("end"), end, "end")
    if "items" in step:
        like(step["items"], items, "items")
    return None if position is None else str(position)


def _begin(world: Any, step: Json) -> Any:
    if "from" in step:
        begin = world.walks.get(step["from"])
        check(begin is not None, f"`{step['from']}` is no walk to go on from")
    else:
        begin = step.get("position_text", json.dumps({"operation": step["operation"]}))
    return json.dumps(json.loads(begin or "") | {"max_pages": step["max_pages"]}) if "max_pages" in step else begin
