"""Runs the cases of `tests/store` against a store. Their README is the definition of the format."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import hopline

Json = dict[str, Any]
NAME_DIGITS = 32


class Shop(Protocol):
    """A store that is empty, with what a case may do to it."""

    can: set[str]
    now_ms: int

    def open(self) -> hopline.Store: ...
    def die(self, client: hopline.Store) -> None: ...
    def damage(self, name: str, how: str) -> None: ...
    def die_in_put(self, client: hopline.Store, name: str, data: bytes) -> None: ...
    def end_claims(self, client: hopline.Store) -> None: ...


def cases(folder: Path) -> list[tuple[str, Json]]:
    found = [(f"{path.name}: {case['name']}", case) for path in sorted(folder.glob("*.json")) for case in json.loads(path.read_text())["cases"]]
    assert found and len({name for name, _ in found}) == len(found)
    return found


def run(case: Json, shop: Shop) -> None:
    assert set(case) <= {"name", "needs", "steps"}
    clients: dict[str, hopline.Store] = {}
    for n, step in enumerate(case["steps"], 1):
        try:
            _step(dict(step), shop, clients)
        except AssertionError as failure:
            raise AssertionError(f"step {n} {step}: {failure}") from failure
    for client in clients.values():
        client.close()


def _step(step: Json, shop: Shop, clients: dict[str, hopline.Store]) -> None:
    match step:
        case {"close": name}:
            clients.pop(name).close()
        case {"die": name}:
            shop.die(clients.pop(name))
        case {"now": now}:
            shop.now_ms = now
        case {"damage": name, "how": how}:
            shop.damage(name, how)
        case {"end_claims": name}:
            shop.end_claims(clients[name])
        case {"as": name}:
            if name not in clients:
                clients[name] = shop.open()
            if step.get("dies"):
                return shop.die_in_put(clients.pop(name), step["put"], step["data"].encode())
            _call(clients[name], {member: value for member, value in step.items() if member != "as"})
        case _:
            raise AssertionError("no such step")


def _call(client: hopline.Store, step: Json) -> None:
    expected = step.pop("answer", None)
    match step:
        case {"claim": names, "most": most, **rest}:
            assert not rest
            found = client.claim(names, most)
            if isinstance(found, hopline.OwnedElsewhere):
                assert set(expected) == {"busy"} and _like(expected["busy"], found.data), found
            elif "claimed_count" in expected:
                assert len(found) == expected["claimed_count"] and set(found) <= set(expected["of"]), found
                assert all(_like(expected["of"][name], data) for name, data in found.items()), found
            else:
                assert set(expected) == {"claimed"} and set(found) == set(expected["claimed"]), found
                assert all(_like(expected["claimed"][name], data) for name, data in found.items()), found
        case {"put": name, "data": data, **rest}:
            _written(expected, _put(client, name, data, rest))
        case {"fill": fill, "data": data, **rest}:
            assert set(fill) == {"space", "kind", "first", "count"}
            for number in range(fill["first"], fill["first"] + fill["count"]):
                name = f"{fill['space']}.{fill['kind']}{number:0{NAME_DIGITS}x}"
                assert _put(client, name, data, {**rest, "new": True}), name
        case {"delete": name, **rest}:
            assert not rest
            _written(expected, client.delete(name))
        case {"release": names, **rest}:
            assert not rest and expected == "done"
            client.release(None if names == "all" else names)
        case {"list": space, **rest}:
            assert set(rest) <= {"after", "open"}
            page = client.list(space, after=rest.get("after"), open=rest.get("open", False))
            assert page.more == expected["more"], page
            if "count" in expected:
                assert len(page.entries) == expected["count"], len(page.entries)
                assert (page.entries[0].name, page.entries[-1].name) == (expected["first"], expected["last"]), page
            else:
                assert [(one.name, one.whose) for one in page.entries] == [(one["name"], one["whose"]) for one in expected["entries"]], page
                assert all(_like(one["data"], there.data) for one, there in zip(expected["entries"], page.entries, strict=True)), page
        case {"spend": entry, "space": space, "amount": amount, **rest}:
            assert set(rest) <= {"cap", "day"}
            cap = Decimal(rest["cap"]) if "cap" in rest else None
            spent = client.spend(space, entry, Decimal(amount), day=rest.get("day"), cap=cap)
            if isinstance(spent, hopline.OverCap):
                assert set(expected) == {"over", "day"} and (Decimal(expected["over"]), expected["day"]) == spent, spent
            else:
                assert expected == {"granted": spent}, spent
        case _:
            raise AssertionError("no such call")


def _put(client: hopline.Store, name: str, data: str, how: Json) -> bool:
    assert set(how) <= {"new", "release", "keep_for"}
    keep_for = how["keep_for"] / 1000 if "keep_for" in how else None
    return client.put(name, data.encode(), new=how.get("new", False), keep_for=keep_for, release=how.get("release", False))


def _written(expected: object, done: bool) -> None:
    assert expected == ("done" if done else "lost"), done


def _like(expected: Any, data: bytes | None) -> bool:
    match expected:
        case {"one_of": known}:
            return any(_like(one, data) for one in known)
        case {"unreadable": True}:
            try:
                json.loads(b"{}" if data is None else data)
            except ValueError:
                return True
            return False
        case None:
            return data is None
    return data == str(expected).encode()
