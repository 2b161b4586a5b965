"""The leases of pools, by the commands that acquired them, and the work for pools while no caller is present."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Protocol, TypeVar

from . import _hopline
from ._commands import begin
from ._told import LeaseAdvice
from ._work import now

T = TypeVar("T")


class Carrying(Protocol):
    """The part of an engine that leases use."""

    def carry(self, carrier: None) -> None:
        """Ends the work for pools, since there is none any more."""

    def of_pools(self, ask: Callable[[_hopline.Client], T], closed: T) -> T:
        """Asks the core a question about a pool; `closed` is the answer of a closed client."""
        ...

    def look(self) -> None:
        """Wakes the background thread."""


class Asking:
    """The acquiring of a lease. After any interrupt, the caller has the lease or it goes back."""

    def __init__(self, leases: Leases, params: Mapping[str, Any]) -> None:
        self._leases, self._start = leases, begin("acquire", params, {})
        self.command = -1
        """The command of the lease."""

    def begin(self, core: _hopline.Client) -> int | None:
        """Requests the lease."""
        command = self._start(core)
        self.command = -1 if command is None else command
        return command

    def undo(self) -> None:
        """Gives the lease back, since no caller has it."""
        self._leases.give_back(self.command)


class Watch(Protocol):
    """Counts the work of pools, by their names. Its methods are never called with a lock held."""

    def acquired(self, pool: str, seconds: float, is_granted: bool) -> None:
        """A caller waited that long, and was granted a lease or none."""

    def returned(self, pool: str, seconds: float) -> None:
        """A lease came back after that time."""

    def observed(self, pool: str, seen: str) -> None:
        """An observation was made through a lease: a word, or a status."""

    def stored(self, call: str) -> None:
        """A call of the store was made."""

    def lost(self, names: int) -> None:
        """Claims of that many names have ended."""


class _Ref(weakref.ref[object]):
    """A reference that knows its lease."""

    __slots__ = ("command",)
    command: int


class Leases:
    """All leases of a client."""

    def __init__(self, engine: Carrying) -> None:
        self._engine = weakref.ref(engine)
        self.out: dict[int, tuple[int, int]] = {}
        """The pool and the number of each lease that is out."""
        self.pools: dict[int, str] = {}
        """The names of the pools that are open."""
        self.watch: Watch | None = None
        self._since: dict[int, float] = {}
        self._refs: dict[int, tuple[_Ref, weakref.ref[object]]] = {}
        self.dropped: deque[_Ref] = deque()
        """The leases without a reference."""
        self._data: dict[tuple[int, int], tuple[str, int, dict[str, Any]]] = {}
        """By pool and slot: the session and its generation, and the callers' data."""

    def granted(self, command: int, told: Mapping[str, Any]) -> None:
        """Notes a granted lease, even if its caller is gone. The engine's lock is held."""
        self.out[command] = (told["pool"], told["lease"])
        if self.watch is not None:
            self._since[command] = monotonic()

    def count(self, pool: int) -> int:
        """Returns the number of a pool's leases that are out."""
        return sum(1 for known, _ in list(self.out.values()) if known == pool)

    def data(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the callers' data for a session, which is empty for another session or another exit."""
        place, now_there = (told["pool"], told["slot"]), (told["session_id"], told["generation"])
        kept = self._data.get(place)
        if kept is None or kept[:2] != now_there:
            kept = self._data[place] = (*now_there, {})
        return kept[2]

    def opened(self, pool: int, name: str) -> None:
        """Notes that a pool is open."""
        self.pools[pool] = name

    def closed(self, pool: int) -> None:
        """Notes that a pool is closed. Without pools no thread works for them."""
        self.pools.pop(pool, None)
        self._data = {place: kept for place, kept in self._data.items() if place[0] != pool}
        if not self.pools and (engine := self._engine()) is not None:
            engine.carry(None)

    # The operations of leases. A lease of a client that is closed is over.

    def is_valid(self, command: int) -> bool:
        """Returns true if its session is still this client's."""
        engine, lease = self._engine(), self.out.get(command)
        return engine is not None and lease is not None and engine.of_pools(lambda core: core.is_valid(*lease), False)

    def observe(self, command: int, seen: str, wait: int | None) -> LeaseAdvice:
        """Returns the advice after an observation. A lease that is over is to be given back."""
        engine, lease = self._engine(), self.out.get(command)
        if engine is None or lease is None:
            return "give_back"
        if self.watch is not None:
            self.watch.observed(self.pools.get(lease[0], ""), seen)
        advice: LeaseAdvice | None = engine.of_pools(lambda core: core.observe_lease(*lease, seen, wait, *now()), None)
        return advice or "give_back"

    def give_back(self, command: int) -> None:
        """Gives the lease back."""
        if (engine := self._engine()) is None or (lease := self.out.get(command)) is None:
            return
        since = self._since.get(command)
        engine.of_pools(lambda core: self._give_back(core, command), None)
        if self.watch is not None and since is not None:
            self.watch.returned(self.pools.get(lease[0], ""), monotonic() - since)

    def look_after(self, lease: object, command: int) -> None:
        """A lease without references goes back when the garbage collector finds it, at any moment: a function that no interrupt can break
        off notes that, and the next look does it.
        """
        noted = _Ref(lease, self.dropped.append)
        noted.command = command
        self._refs[command] = noted, weakref.ref(lease, self._look)

    def _look(self, _: object) -> None:
        if (engine := self._engine()) is not None:
            engine.look()

    def give_dropped_back(self, core: _hopline.Client) -> None:
        """Gives back the leases without a reference. The engine's lock is held."""
        while self.dropped:
            self._give_back(core, self.dropped[0].command)
            self.dropped.popleft()

    def _give_back(self, core: _hopline.Client, command: int) -> None:
        lease = self.out.get(command)
        if lease is not None:
            core.give_back(*lease, *now())
            # Not before: a lease that was interrupted until here goes back once more, which does nothing.
            self.out.pop(command, None)
            self._since.pop(command, None)
        self._refs.pop(command, None)
