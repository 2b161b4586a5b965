"""The exits that a port leads through: that of one lease, of one session, or those of a pool."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from .._seen import Seen, seen_text, wait_ms
from .._told import HoplineError, Unavailable
from ._words import Refusal

if TYPE_CHECKING:
    from .._async_pool import AsyncLease, AsyncPool
    from .._leases import Leases
    from .._session import Known
    from .._types import Proxy

LINGER = 10.0
"""So many seconds the lease of a key stays after its last connection, so that a report about it still finds it."""
DRAIN = 30.0
"""So many seconds the connections of an exit that is not used any more may go on."""
_SOON = 0.05
"""A caller who waits for longer has leases that only stay given back."""


class Exit:
    """The exit of a session, with the connections that go through it."""

    def __init__(self, proxy: Proxy, session_id: str | None = None, generation: int = 0, key: str | None = None) -> None:
        self.address: Mapping[str, Any] = proxy._told("any")
        self.session_id, self.generation, self.key = session_id, generation, key
        self.users = 0
        """The calls that have it, from their beginning to their end."""
        self.over_since: float | None = None
        """Since when no call gets it any more."""

    def observe(self, seen: Seen) -> str | None:
        """Passes on an observation, and returns the advice; `None` if there is no lease to tell."""
        return None

    @property
    def is_valid(self) -> bool:
        """False once its connections have to end."""
        return True

    def release(self) -> None:
        """Gives it back. No connection goes through it any more."""


class Exits(Protocol):
    """The exits of a port."""

    async def take(self, key: str | None, host: str, avoid: str | None) -> Exit:
        """Returns an exit for one call, with one more user. Raises `Refusal`."""
        ...

    def give(self, one: Exit) -> None:
        """A call has ended: one user less."""
        ...

    def give_up(self, one: Exit) -> None:
        """No call gets this exit any more."""
        ...

    def of_key(self, key: str | None) -> Exit | None:
        """The exit that a report is about."""
        ...

    def close(self) -> None:
        """Gives everything back."""
        ...

    async def status(self) -> dict[str, Any]:
        """The status beside that of connections."""
        ...


class OneExit:
    """The exit of one lease or session, or of a proxy that is known from elsewhere."""

    def __init__(self, current: Callable[[], Exit | None]) -> None:
        self._current = current
        self._last: Exit | None = None

    async def take(self, key: str | None, host: str, avoid: str | None) -> Exit:
        """Returns the exit as it is now."""
        found = self.of_key(key)
        if found is None:
            raise Refusal(503, "the lease or session of this port is over, or not usable yet")
        found.users += 1
        return found

    def give(self, one: Exit) -> None:
        """Its end is not the port's."""
        one.users -= 1

    def give_up(self, one: Exit) -> None:
        """The holder of the lease decides what to do after an observation."""

    def of_key(self, key: str | None) -> Exit | None:
        """The exit, whatever the key."""
        found = self._current()
        if found is None or self._last is None or found.generation != self._last.generation:
            self._last = found
        return self._last

    def close(self) -> None:
        """There is nothing to give back."""

    async def status(self) -> dict[str, Any]:
        """There is nothing more to say."""
        return {}


class LeaseExit(Exit):
    """The exit of a lease that its program holds."""

    def __init__(self, proxy: Proxy, session_id: str, generation: int, leases: Leases, command: int) -> None:
        super().__init__(proxy, session_id, generation)
        self._leases, self._command = leases, command

    def observe(self, seen: Seen) -> str:
        """Passes it on to the lease."""
        advised = self._leases.observe(self._command, seen_text(seen), wait_ms(seen))
        return "give_back" if advised is None else advised[0]

    @property
    def is_valid(self) -> bool:
        """True as long as the lease is out, and its session this client's."""
        return self._leases.is_out(self._command) and self._leases.is_valid(self._command)


class SessionExit(Exit):
    """The exit of a session that its program holds."""

    def __init__(self, proxy: Proxy, session_id: str, generation: int, known: Known) -> None:
        super().__init__(proxy, session_id, generation)
        self._known = known

    @property
    def is_valid(self) -> bool:
        """False once the session has another exit, or has ended."""
        return self._known.generation == self.generation and self._known.phase == "ready"


class PoolExit(Exit):
    """The exit of a lease that the port has acquired."""

    def __init__(self, lease: AsyncLease, key: str | None) -> None:
        super().__init__(lease.proxy, lease.session_id, lease.generation, key)
        self._lease = lease

    def observe(self, seen: Seen) -> str:
        """Passes it on to the lease."""
        return self._lease.observe(seen)

    @property
    def is_valid(self) -> bool:
        """True as long as the session is this client's."""
        return self._lease.valid

    def release(self) -> None:
        """Gives the lease back."""
        self._lease.release()


class _OfKey:
    """The calls of one key: one of them acquires the lease, which all of them use."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.exit: Exit | None = None
        self.calls = 0
        self.given_up = 0
        """So many exits were given up while connections went on through them. The pool lends one key one session at a time."""
        self.end: asyncio.TimerHandle | None = None


class PoolExits:
    """The exits of a pool: a lease for each connection, or for all those with one key at a time."""

    def __init__(self, pool: AsyncPool, patience: float, key: str | None) -> None:
        self._pool, self._patience, self._key = pool, patience, key
        self._keys: dict[str, _OfKey] = {}
        self._out: set[Exit] = set()

    async def take(self, key: str | None, host: str, avoid: str | None) -> Exit:
        """Returns an exit for one call: that of its key, or a new one. A lease without a key is for its host alone."""
        key = key or self._key
        if key is None:
            found = await self._acquired(None, self._patience, named=None, target=host, avoid=avoid)
            found.users += 1
            return found
        mine = self._keys.setdefault(key, _OfKey())
        until = monotonic() + self._patience
        mine.calls += 1
        try:
            async with mine.lock:
                if mine.exit is None or mine.exit.over_since is not None or not mine.exit.is_valid:
                    if mine.exit is not None:
                        self.give_up(mine.exit)
                    # The number in front, as a user name may have any letters.
                    named = f"{mine.given_up}#{key}"
                    mine.exit = await self._acquired(key, max(0.0, until - monotonic()), named=named, avoid=avoid)
                mine.exit.users += 1
                return mine.exit
        except BaseException:
            self._left(key, mine)
            raise

    def give(self, one: Exit) -> None:
        """Gives the lease back with its last call; that of a key a little later."""
        one.users -= 1
        mine = self._keys.get(one.key) if one.key is not None else None
        if one.users == 0 and (mine is None or mine.exit is not one):
            self._release(one)
        if one.key is not None and mine is not None:
            self._left(one.key, mine)

    def give_up(self, one: Exit) -> None:
        """The next call of its key gets another lease."""
        if one.over_since is None:
            one.over_since = monotonic()
        mine = self._keys.get(one.key) if one.key is not None else None
        if mine is not None and mine.exit is one:
            mine.exit = None
            mine.given_up += one.users > 0
        if one.users == 0:
            self._release(one)

    def of_key(self, key: str | None) -> Exit | None:
        """The exit that the calls of a key use."""
        key = key or self._key
        if key is None:
            raise Refusal(400, "a report names the key that the client sends as its user name: `key=…`")
        mine = self._keys.get(key)
        return None if mine is None else mine.exit

    def close(self) -> None:
        """Gives all leases back."""
        for mine in self._keys.values():
            if mine.end is not None:
                mine.end.cancel()
        self._keys.clear()
        for one in list(self._out):
            self._release(one)

    async def status(self) -> dict[str, Any]:
        """The status of the pool, with amounts as text."""
        try:
            now = await self._pool.status()
        except HoplineError as error:  # another program has drained the pool
            return {"pool": self._pool.name, "closed": str(error)}
        hold = now.hold
        why = None if hold is None else {"reason": hold.reason, "why": hold.why, "needs": hold.needs, "retry_at": hold.retry_at and hold.retry_at.isoformat()}
        counts = {name: getattr(now, name) for name in ("size", "ready", "leased", "creating", "resting", "in_doubt", "with_others", "free_in_store", "waiting")}
        return {"pool": self._pool.name, "spent_today_usd": str(now.spent_today_usd), "hold": why, **counts}

    async def _acquired(self, key: str | None, patience: float, *, named: str | None, target: str | None = None, avoid: str | None = None) -> Exit:
        asking = asyncio.ensure_future(self._pool.acquire(target=target, key=named, avoid=avoid, timeout=patience))
        try:
            await asyncio.wait({asking}, timeout=_SOON)
            if not asking.done():
                self._release_lingering()
            lease = await asking
        except asyncio.CancelledError:
            asking.cancel()
            raise
        except HoplineError as error:
            raise _refusal(error) from None
        made = PoolExit(lease, key)
        self._out.add(made)
        return made

    def _left(self, key: str, mine: _OfKey) -> None:
        mine.calls -= 1
        if mine.calls == 0 and self._keys.get(key) is mine:
            if mine.end is not None:
                mine.end.cancel()
            mine.end = asyncio.get_running_loop().call_later(LINGER if mine.exit is not None else 0, self._let_go, key, mine)

    def _let_go(self, key: str, mine: _OfKey) -> None:
        if mine.calls == 0 and self._keys.get(key) is mine:
            del self._keys[key]
            if mine.exit is not None:
                self._release(mine.exit)

    def _release_lingering(self) -> None:
        for key, mine in list(self._keys.items()):
            self._let_go(key, mine)

    def _release(self, one: Exit) -> None:
        if one in self._out:
            self._out.discard(one)
            one.over_since = one.over_since or monotonic()
            with suppress(HoplineError):
                one.release()


def _refusal(error: HoplineError) -> Refusal:
    """The refusal of a call for which there is no session."""
    sentence = str(error).removeprefix("acquire: ")
    if not isinstance(error, Unavailable):
        return Refusal(503, sentence)
    retry_at: datetime | None = getattr(error, "retry_at", None)
    wait = None if retry_at is None else max(1, math.ceil((retry_at - datetime.now(timezone.utc)).total_seconds()))
    again = "" if retry_at is None or "try again in" in sentence else f"; again at {retry_at:%H:%M:%S} UTC"
    return Refusal(503, f"{sentence}{again}", retry_after=wait)
