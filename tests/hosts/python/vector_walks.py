"""A walk through a list, its pages as the script of a vector has them."""

import json
from typing import Any

from hopline._hopline import host_text, page_params, page_turn
from vector_format import Json, check, like, no_secret, same


def walk(world: Any, step: Json) -> str | None:
    """Reads the pages of a walk; returns where it stopped."""
    begin = {"operation": step["operation"], "position": _beginning(world, step), "max_pages": step.get("max_pages")}
    position: Any = None
    end, items, failure = None, [], None
    params = json.dumps(step.get("params", {}))
    try:
        position = json.loads(host_text("walk", json.dumps(begin)))["position"]
    except ValueError as refused:
        failure = str(refused)
    for page in step.get("pages", []):
        check(failure is None and end is None, f"expected a read of {page['send']}, and the walk is over: {end} {failure}")
        command = world.client.start(step["operation"], page_params(position, params), "{}")
        world.send(page)
        same(["completed", command], list(world.next()), "a page")
        taken = world.client.take(command)
        if taken is not None and taken[0] == "answered":
            raw = taken[1].raw
            turn = json.loads(page_turn(position, taken[2]))
            position, end = turn.get("position"), turn.get("end")
            if end != "repeated_page":
                items += next((raw[name] for name in ("items", "list") if raw.get(name)), [])
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


def _beginning(world: Any, step: Json) -> Any:
    if "from" not in step:
        return step.get("position_text")
    check(world.walks.get(step["from"]) is not None, f"`{step['from']}` is no walk to go on from")
    return world.walks[step["from"]]
