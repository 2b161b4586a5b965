"""The store of a case: what a store would answer, so that a script names only what it is about. Calls and answers are the tuples of the
package's class."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from vector_format import check

DAY = 24 * 3600 * 1000
PAGE = 500
WORDS = {
    "done": {"done", "lost"},
    "claimed": {"claimed"},
    "listed": {"listed"},
    "counted": {"granted", "over"},
}
"""The answers of the store that a script may name."""


@dataclass
class Kept:
    data: bytes
    until: int | None
    owned: bool


class Store:
    """Names of one client at a time, and what counts on each day."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.unsure: dict[str, bytes | None] = {}
        """The puts and deletes that were not confirmed: each may be on the disk."""
        self.day = 0
        self.entries: dict[tuple[int, str], Decimal] = {}

    def call(self, call: tuple[Any, ...], unix: int) -> tuple[Any, ...]:
        for name in [name for name, kept in self.kept.items() if not kept.owned and kept.until is not None and kept.until <= unix]:
            del self.kept[name]
        match call:
            case ("claim", names, _):
                for name in names:
                    if name in self.kept:
                        self.kept[name].owned = True
                return ("claimed", [(name, self.data(name)) for name in names])
            case ("put", name, data, new, keep_for, release):
                self.unsure.pop(name, None)
                if new and name in self.kept and not self.kept[name].owned:
                    return ("lost",)
                self.kept[name] = Kept(data, None if keep_for is None else unix + keep_for, not release)
                return ("done",)
            case ("delete", name):
                self.unsure.pop(name, None)
                self.kept.pop(name, None)
                return ("done",)
            case ("release", names):
                self.take_away(list(self.kept) if names is None else names)
                return ("done",)
            case ("list", space, after, is_open):
                found = [
                    (name, kept.data, "mine" if kept.owned else "free")
                    for name, kept in sorted(self.kept.items())
                    if name.startswith(f"{space}.") and (after is None or name > after) and not (is_open and kept.until is not None)
                ]
                return ("listed", found[:PAGE], len(found) > PAGE)
            case ("spend", _, day, entry, amount, cap):
                return self.spend(day, entry, Decimal(amount), None if cap is None else Decimal(cap), unix)
        raise AssertionError(f"no store has the call {call}")

    def spend(self, day: int | None, entry: str, amount: Decimal, cap: Decimal | None, unix: int) -> tuple[Any, ...]:
        today = self.today(unix)
        day = today if day is None else day
        total = sum((usd for (known, other), usd in self.entries.items() if known == day and other != entry), Decimal(0))
        before = self.entries.get((day, entry))
        if cap is not None and (before is None or amount > before) and total + amount > cap:
            return ("over", day, str(total))
        self.entries[(day, entry)] = amount
        return ("granted", day)

    def today(self, unix: int) -> int:
        """The day by a clock that never goes back."""
        self.day = max(self.day, unix // DAY)
        return self.day

    def doubt(self, call: tuple[Any, ...]) -> None:
        """A call was made, and nobody knows yet what came of it."""
        if call[0] in ("put", "delete"):
            self.unsure[call[1]] = call[2] if call[0] == "put" else None

    def answer(self, call: tuple[Any, ...], word: str, unix: int) -> tuple[Any, ...]:
        """The store's answer where a script names one."""
        if word in ("failed", "never"):
            return (word,)
        if word == "lost":
            self.take_away(names_of(call))
            return ("lost",)
        if word == "busy":
            return ("busy", next((self.data(name) for name in names_of(call)), None))
        if word == "over":
            return ("over", self.today(unix), "0")
        answer = self.call(call, unix)
        check(answer[0] in WORDS[word], f"the store would answer {answer}")
        return answer

    def take_away(self, names: list[str]) -> None:
        """These names are free, or another client has them."""
        for name in names:
            if name in self.kept:
                self.kept[name].owned = False

    def crash(self, also: list[str]) -> None:
        """The process dies: what it had is free, and these writes are on the disk though nobody confirmed them."""
        self.take_away(list(self.kept))
        for name in also:
            check(name in self.unsure, f"every write of `{name}` was confirmed")
            data = self.unsure.pop(name)
            if data is None:
                self.kept.pop(name, None)
            else:
                self.kept[name] = Kept(data, None, False)
        self.unsure.clear()

    def data(self, name: str) -> bytes | None:
        return self.kept[name].data if name in self.kept else None

    def plant(self, name: str, data: bytes) -> None:
        known = self.kept.get(name)
        self.kept[name] = Kept(data, known.until if known else None, known is not None and known.owned)


def answers_itself(call: tuple[Any, ...]) -> bool:
    """True if a call is answered by the store where the script does not name it."""
    return call[0] not in ("put", "delete")


def names_of(call: tuple[Any, ...]) -> list[str]:
    """The names that a call is about."""
    if call[0] in ("claim", "release"):
        return list(call[1] or [])
    return [call[1]] if call[0] in ("put", "delete") else []
