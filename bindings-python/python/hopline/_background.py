"""Background work: a thread that works for pools, calls a failed store again, and ends requests that take too long."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

from ._threads import in_background, in_warm_thread
from ._waiting import Bell, Later, wait_for
from ._work import Ask, Owner, Send, Wait, now

if TYPE_CHECKING:
    from ._asks import Asks
    from ._http import Transport


class Tended(Protocol):
    """The part of an engine that background work uses."""

    asks: Asks

    def tend(self, owner: Owner) -> Ask | Send | Wait | None:
        """Returns the next work, or `None` if the thread is to end."""
        ...

    def carrier(self) -> Transport | None:
        """The transport for pools."""
        ...

    def begin(self, owner: Owner, work: Send, vouched: Later[bool] | None) -> bool:
        """Returns whether a request is to go out now."""
        ...

    def answered(self, work: Send, answer: object) -> None:
        """Takes the outcome of a send."""

    def is_to_finish(self) -> bool:
        """Returns true if the client is closed, and no caller waits in it."""
        ...

    def finish(self) -> None:
        """Finishes a closed client."""


class Background:
    """At most one thread, for as long as there is work. The thread keeps no client alive that has no other references."""

    def __init__(self, engine: Tended) -> None:
        self._engine = weakref.ref(engine)
        self._bell = Bell()
        self._runs = False
        self.until: int | None = None
        """The time of the next look."""
        self.carrier: Transport | None = None
        """The transport for pools. As long as there is one, this thread works for them even if callers are present."""

    def look(self, until: int) -> None:
        """Schedules a look by that time. The engine's lock is held."""
        if self._runs and (self.until is None or self.until <= until):
            return
        self.until = until
        if self._runs:
            self._bell.ring()
            return
        try:
            client, bell = self._engine, self._bell
            in_background(lambda: _tend(client, bell, max(until - now()[1], 0) / 1000))
            self._runs = True
        except RuntimeError:  # the interpreter ends, or there can be no more threads: the next command does the work
            return

    def start(self) -> None:
        """Looks again at once. The engine's lock is held."""
        self.until = None
        self._bell.ring()
        self.look(0)

    def stop(self) -> None:
        """Notes that the thread ends; another one may begin. The engine's lock is held."""
        self._runs = False

    def wake(self) -> None:
        """Wakes the thread."""
        self._bell.ring()


def _tend(client: weakref.ref[Tended], bell: Bell, seconds: float | None) -> None:
    owner = Owner(bell.ring)
    # Callers that are present send first.
    owner.given_up = True
    while True:
        # First, since another holder that drops the client meanwhile is to be the one that ends it.
        bell.wait(seconds)
        bell.stop()
        engine = client()
        if engine is None:
            return
        work = engine.tend(owner)
        seconds = 0
        match work:
            case Ask():
                engine.asks.make(owner, work)
            case Send():
                _send(engine, owner, work)
            case Wait():
                seconds = work.seconds
            case None:
                if engine.is_to_finish():
                    engine.finish()
                return
        del engine, work


def _send(engine: Tended, owner: Owner, work: Send) -> None:
    """One send for a pool, in a thread of its own."""
    client, carrier, vouched = weakref.ref(engine), engine.carrier(), engine.asks.vouched(work)

    def exchange() -> None:
        if vouched is not None:
            wait_for(vouched, work.patience())
        engine = client()  # a client that everybody has dropped meanwhile buys nothing any more
        if engine is None or carrier is None or not engine.begin(owner, work, vouched):
            return
        try:
            answer: object = carrier(work.request)
        except BaseException as error:  # the exception belongs to the caller that waits
            answer = error
        engine.answered(work, answer)

    owner.sending.pop(work.step, None)
    try:
        in_warm_thread(exchange)
    except RuntimeError:  # there can be no more threads
        exchange()
