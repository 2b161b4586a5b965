"""The format of the shared vectors: what a file may say, and when a value is like another."""

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# The members that each verb may have beside it, and those that it must.
VERBS: dict[str, tuple[set[str], set[str]]] = {
    "start": ({"operation"}, {"params", "params_text", "options"}),
    "put": (set(), {"has", "new", "keep_for", "releases", "as", "answer"}),
    "delete": (set(), {"as", "answer"}),
    "claim": (set(), {"as", "answer"}),
    "release": (set(), {"as", "answer"}),
    "list": (set(), {"as", "answer"}),
    "spend": (set(), {"usd", "day", "cap", "as", "answer"}),
    "send": (set(), {"for", "headers", "key", "body", "body_text", "timeout_ms", "max_body", "within", "as", "answer"}),
    "resolve": ({"answer"}, {"misuse"}),
    "wait": (set(), set()),
    "sleep": (set(), set()),
    "advance": (set(), set()),
    "completed": (set(), set()),
    "complete": (set(), {"ok", "error", "parts"}),
    "take": (set(), {"ok", "error", "nothing"}),
    "notify": (set(), set()),
    "cancel": (set(), set()),
    "crash": (set(), set()),
    "plant": (set(), {"text", "change", "name"}),
    "lost": (set(), set()),
    "resume": ({"as"}, {"options"}),
    "resume_intent": ({"as"}, {"options"}),
    "reconcile": ({"as"}, set()),
    "resume_all": (set(), {"options"}),
    "settle": ({"as", "happened"}, {"became", "early"}),
    "forget": ({"as"}, set()),
    "release_session": (set(), {"done"}),
    "saved": (set(), set()),
    "observe": ({"seen"}, {"verdict", "reason", "why", "as"}),
    "walk": ({"operation"}, {"params", "from", "position_text", "max_pages", "pages", "items", "end", "error"}),
    "ask": ({"given"}, {"ok", "error"}),
}
ANSWER = {"ok", "error", "text", "repeat", "hex", "failed", "sent", "status", "headers", "meta", "truncated"}
ANSWERS = {
    "put": {"done", "lost"},
    "delete": {"done", "lost"},
    "claim": {"claimed", "busy"},
    "release": {"done"},
    "list": {"listed"},
    "spend": {"counted", "over"},
    "resolve": {"done", "lost", "claimed", "busy", "listed", "counted", "over"},
}
"""The answers of a store to each, beside that it failed, or was never opened."""
CASE = {"name", "client", "now", "entropy", "refused", "script"}


class Failure(Exception):
    """The expected value and the one that came."""


def check(holds: object, said: str) -> None:
    if not holds:
        raise Failure(said)


def only(members: Json, known: set[str], what: str) -> None:
    check(not (strange := set(members) - known), f"{what} has the unknown members {sorted(strange)}")


def cases(folder: Path) -> list[tuple[str, Json]]:
    """Every case, by the name of its file and its own. A step that is not understood is a failure."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        file = json.loads(path.read_text())
        only(file, {"about", "source", "cases"}, path.name)
        check(file["cases"], f"{path.name} has no cases")
        for case in file["cases"]:
            only(case, CASE, path.name)
            for step in case.get("script", []):
                read_step(step)
            found.append((f"{path.relative_to(folder)}: {case['name']}", case))
    check(found, f"there are no vectors in {folder}")
    return found


def read_step(step: Json) -> str:
    verbs = [verb for verb in VERBS if verb in step]
    check(len(verbs) == 1, f"a step has one verb, and this has the members {sorted(step)}")
    must, may = VERBS[verbs[0]]
    only(step, {verbs[0]} | must | may, verbs[0])
    check(must <= set(step), f"{verbs[0]} needs {sorted(must)}")
    for page in step.get("pages", []):
        check(read_step(page) == "send", "a page is a send")
    if isinstance(answer := step.get("answer"), dict):
        only(answer, ANSWER, "an answer")
        check(len({"ok", "error", "text", "hex", "failed"} & set(answer)) == 1, "an answer has one body or failure")
    else:
        known = {None, "failed", "never"} | ANSWERS.get(verbs[0], set())
        check(answer in known, f"an answer of {verbs[0]} can't be {answer}")
    return verbs[0]


def like(expected: Any, found: Any, at: str) -> None:
    said = f"at `{at}` expected {json.dumps(expected)[:600]}, came {json.dumps(found, default=str)[:600]}"
    if isinstance(expected, dict) and set(expected) == {"contains"}:
        return check(isinstance(found, str) and expected["contains"] in found, said)
    if isinstance(expected, dict) and set(expected) == {"repeated", "times"}:
        return check(found == expected["repeated"] * expected["times"], said)
    if isinstance(expected, dict) and set(expected) == {"min", "max"} and is_number(found):
        return check(expected["min"] <= found <= expected["max"], said)
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            like(value, found.get(name), f"{at}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for n, (one, other) in enumerate(zip(expected, found, strict=True)):
            like(one, other, f"{at}[{n}]")
    else:
        check(expected == found and (is_number(expected) or type(expected) is type(found)), said)


def same(expected: Any, found: Any, at: str) -> None:
    like(expected, found, at)
    like(found, expected, at)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def no_secret(what: str, text: str) -> None:
    check("canary" not in text, f"{what} holds a secret: {text}")


def overlay(base: Json, over: Json) -> Json:
    for name, value in over.items():
        both = isinstance(base.get(name), dict) and isinstance(value, dict)
        base[name] = overlay(base[name], value) if both else value
    return base


class Names:
    """Names that a script gives to what the client makes up."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def bind(self, name: str, value: str) -> None:
        check(self.values.setdefault(name, value) == value, f"expected `{name}` ({self.values[name]}), came {value}")
        others = [other for other, bound in self.values.items() if bound == value and other != name]
        check(not others, f"expected a new value for `{name}`, came that of {others}")

    def value(self, name: str) -> str:
        check(name in self.values, f"nothing is named `{name}` yet")
        return self.values[name]

    def place(self, name: str) -> int:
        """Where a name comes in the order of their first mentions; what has none comes last."""
        return list(self.values).index(name) if name in self.values else len(self.values)

    def put_into(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.put_into(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.put_into(one) for one in value]
        if not isinstance(value, str):
            return value
        # People see the name and the version of a record.
        known = (value, value.rpartition(".")[0] or value)
        return next((name for name, bound in self.values.items() if bound in known), value)
