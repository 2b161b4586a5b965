"""The leases of pools, by the commands that acquired them, and the work for pools while no caller is present."""

from __future__ import annotations

import json
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from time import monotonic
from typing import Any, Protocol, TypeVar

from . import _hopline
from ._commands import begin
from ._log import log
from ._told import LeaseAdvice
from ._work import Begin, Owner, now

T = TypeVar("T")


class Carrying(Protocol):
    """The part of an engine that leases use."""

    def carry(self, carrier: None) -> None:
        """Ends the work for pools, since there is none any more."""

    def of_pools(self, ask: Callable[[_hopline.Client], T], closed: T, gives_back: bool = False) -> T:
        """Asks the core a question about a pool; `closed` is the answer of a closed client."""
        ...

    def look(self) -> None:
        """Wakes the background thread."""


_MOST_DATA = 4096
"""The most data of a lease that the store keeps, in bytes of JSON."""


class Asking:
    """The acquiring of a lease. After any interrupt, the caller has the lease or it goes back."""

    def __init__(self, leases: Leases, params: Mapping[str, Any]) -> None:
        self._leases, self._start = leases, begin("acquire", params, {})
        self._owner: Owner | None = None

    @property
    def command(self) -> int:
        """The command of the lease."""
        command = None if self._owner is None else self._owner.command
        return -1 if command is None else command

    def begin(self, core: _hopline.Client, owner: Owner) -> object:
        """Requests the lease."""
        self._owner = owner
        return self._start(core, owner)

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


class _Kept:
    """An exit, by its session and generation, with the callers' data. Those that are JSON are kept by the store, too."""

    __slots__ = ("data", "exit", "told", "_is_refused")

    def __init__(self, exit: tuple[str, int], data: dict[str, Any]) -> None:
        self.exit, self.data, self._is_refused = exit, data, False
        self.told = _data_text(data)
        """What the core has of the data."""

    def lent_with(self, data: dict[str, Any]) -> _Kept:
        """Returns this exit with the core's data. If another client has changed those, they win over all members that are JSON; the other
        members, such as an HTTP client, belong to the exit and stay.
        """
        if _data_text(data) == self.told:
            return self
        own = {name: value for name, value in list(self.data.items()) if _json(name, value) is None}
        return _Kept(self.exit, own | data)

    def news(self) -> str | None:
        """Returns what the core is to have, if that is something else than it has."""
        text = _data_text(self.data)
        is_long = len(text.encode()) > _MOST_DATA
        if is_long and not self._is_refused:
            log("warning", "the data of a lease are more than %d bytes of JSON: this client keeps them, and the store does not", _MOST_DATA)
        self._is_refused = is_long
        return None if is_long or text == self.told else text


def _data_text(data: Mapping[str, Any]) -> str:
    """The members that are JSON."""
    members = ((name, _json(name, value)) for name, value in list(data.items()))
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members if text is not None) + "}"


def _json(name: object, value: object) -> str | None:
    try:
        return json.dumps(value, allow_nan=False) if isinstance(name, str) else None
    except (TypeError, ValueError, RecursionError):
        return None


def _observe(core: _hopline.Client, lease: tuple[int, int], seen: str, wait: int | None) -> tuple[LeaseAdvice, datetime | None] | None:
    advice: LeaseAdvice | None = core.observe_lease(*lease, seen, wait, *now())
    if advice is None:
        return None
    ms = core.retry_at(*lease)
    return advice, None if ms is None else datetime.fromtimestamp(ms / 1000, timezone.utc)


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
        """The leases that go back after the commands that were begun before: those without a reference, and those of whoever closes a pool."""
        self._data: dict[tuple[int, int], _Kept] = {}
        """By pool and slot: the exit that was lent last, with the callers' data."""
        self._kept: dict[int, _Kept] = {}
        """The exit of each lease that is out."""
        self._users: dict[int, weakref.ref[object]] = {}
        """The thread or task that used each lease last. One that has ended keeps nothing."""
        self._ends: dict[int, list[weakref.WeakMethod[Callable[[], None]]]] = {}
        """The methods to call once a lease was given back, of objects that are still there."""

    def granted(self, command: int, told: Mapping[str, Any]) -> None:
        """Notes a granted lease, even if its caller is gone. The engine's lock is held."""
        self.out[command] = (told["pool"], told["lease"])
        if self.watch is not None:
            self._since[command] = monotonic()

    def use(self, command: int, user: object | None) -> None:
        """Notes the thread or task that uses a lease from now on."""
        if user is not None and command in self.out:
            self._users[command] = weakref.ref(user)

    def at_end(self, command: int, call: Callable[[], None]) -> None:
        """Calls a method once the lease was given back, in any thread and with the engine's lock held."""
        known = [one for one in self._ends.get(command, ()) if one() is not None]
        self._ends[command] = [*known, weakref.WeakMethod(call)]
        if command not in self.out:
            self._end(command)

    def _end(self, command: int) -> None:
        for one in self._ends.pop(command, ()):
            if (call := one()) is not None:
                call()

    def count(self, pool: int, without: object | None = None) -> int:
        """Returns the number of a pool's leases that are out, without those of a thread or task."""
        return len(list(self._of(pool))) - len(list(self._used_by(pool, without)))

    def closing(self, pool: int, start: Begin, user: object | None) -> Begin:
        """Starts the closing of a pool. The leases of the thread or task that waits for it go back, since it can't give them back meanwhile.
        """

        def close(core: _hopline.Client, owner: Owner) -> object:
            turn = start(core, owner)
            self.dropped.extend(self._refs[lease][0] for lease in self._used_by(pool, user) if lease in self._refs)
            return turn

        return close

    def _of(self, pool: int) -> Iterator[int]:
        return (command for command, (known, _) in list(self.out.items()) if known == pool)

    def _used_by(self, pool: int, user: object | None) -> Iterator[int]:
        return (command for command in self._of(pool) if user is not None and (used := self._users.get(command)) is not None and used() is user)

    def data(self, command: int, told: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the callers' data for the exit of a lease."""
        place, exit = (told["pool"], told["slot"]), (told["session_id"], told["generation"])
        kept = self._data.get(place)
        kept = _Kept(exit, told["data"]) if kept is None or kept.exit != exit else kept.lent_with(told["data"])
        self._data[place] = self._kept[command] = kept
        return kept.data

    def _keep_data(self, core: _hopline.Client, command: int, lease: tuple[int, int]) -> None:
        """Hands the callers' data to the core, if they have changed, for the next lease of this exit wherever that is."""
        kept = self._kept.get(command)
        text = None if kept is None else kept.news()
        if kept is not None and text is not None:
            # A lease that is not valid any more leaves nothing behind.
            with suppress(ValueError):
                core.set_lease_data(*lease, text, *now())
                kept.told = text

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

    def observe(self, command: int, seen: str, wait: int | None) -> tuple[LeaseAdvice, datetime | None] | None:
        """Returns the advice after an observation, and when the target is worth asking for again. None if the lease is over."""
        engine, lease = self._engine(), self.out.get(command)
        if engine is None or lease is None:
            return None
        if self.watch is not None:
            self.watch.observed(self.pools.get(lease[0], ""), seen)
        return engine.of_pools(lambda core: _observe(core, lease, seen, wait), None)

    def is_out(self, command: int) -> bool:
        """Returns true if the lease was not given back."""
        return command in self.out

    def discard(self, command: int) -> None:
        """Discards its session."""
        engine, lease = self._engine(), self.out.get(command)
        if engine is not None and lease is not None:
            engine.of_pools(lambda core: core.discard(*lease, *now()), False)

    def give_back(self, command: int) -> None:
        """Gives the lease back."""
        if (engine := self._engine()) is None or (lease := self.out.get(command)) is None:
            return
        since = self._since.get(command)
        engine.of_pools(lambda core: self._give_back(core, command), None, True)
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
            self._keep_data(core, command, lease)
            core.give_back(*lease, *now())
            # Not before: a lease that was interrupted until here goes back once more, which does nothing.
            self.out.pop(command, None)
            self._since.pop(command, None)
            self._kept.pop(command, None)
            self._users.pop(command, None)
            self._end(command)
        self._refs.pop(command, None)
