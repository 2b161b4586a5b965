"""Background work: a thread that works for pools, calls a failed store again, and ends requests that take too long."""

from __future__ import annotations

import weakref
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

from . import _hopline
from ._asks import is_sure
from ._log import log
from ._sends import tell
from ._threads import in_background, in_warm_thread
from ._waiting import Bell
from ._work import process

if TYPE_CHECKING:
    from ._asks import Asks
    from ._http import Request, Transport


_PAUSE = 1.0
"""The wait after a look that failed, in seconds."""


class Tended(Protocol):
    """The part of an engine that background work uses."""

    pid: int
    asks: Asks
    core: _hopline.Client

    def carrier(self) -> Transport | None:
        """The transport for pools."""
        ...

    def gives_dropped_back(self) -> bool:
        """Gives back the leases that were dropped."""
        ...

    def finish(self) -> None:
        """Finishes a closed client."""


class Background:
    """At most one thread, for as long as the core has work for it. The thread keeps no client alive that has no other references."""

    def __init__(self, engine: Tended) -> None:
        self._engine = weakref.ref(engine)
        self._bell = Bell()
        self.carrier: Transport | None = None
        """The transport for pools. As long as there is one, this thread works for them even if callers are present."""

    def look(self, ms: int) -> bool:
        """Lets the thread begin, which looks after that time. Returns false if there can be no thread: the interpreter ends, or there are too
        many. Then the next command does the work.
        """
        client, bell = self._engine, self._bell
        try:
            in_background(lambda: _tend(client, bell, ms / 1000))
        except RuntimeError:
            return False
        return True

    def wake(self) -> None:
        """Wakes the thread."""
        self._bell.ring()


def _tend(client: weakref.ref[Tended], bell: Bell, seconds: float | None) -> None:
    while True:
        # First, since another holder that drops the client meanwhile is to be the one that ends it.
        bell.wait(seconds)
        bell.stop()
        engine = client()
        if engine is None or engine.pid != process.id:
            bell.ring()  # an interrupted look may have started two threads, which both wait
            return
        seconds = _looked(engine, bell)
        if seconds == _OVER:
            return
        del engine


_OVER = -1.0
"""Instead of a wait: the thread is to end."""


def _looked(engine: Tended, bell: Bell) -> float | None:
    """One look. Returns the wait until the next one, or `_OVER`. There is no other thread in which the work would go on after a failure."""
    is_sent = False
    try:
        engine.gives_dropped_back()
        turn = engine.core.tend(get_ident())
        match turn:
            case ("ask", step, call):
                _ask(engine, step, call)
            case ("send", step, request, _, patience):
                is_sent = True
                _send(engine, step, request, patience)
            case ("wait", seconds):
                return seconds
            case _:
                bell.ring()
                if engine.core.is_to_finish():
                    engine.finish()
                return _OVER
    except BaseException as trouble:
        with suppress(BaseException):
            engine.core.take_back_in_background(is_sent)
            log("error", "the background work of Hopline failed, and is tried again: it raised %s", type(trouble).__name__)
        return _PAUSE
    return 0.0


def _ask(engine: Tended, step: int, call: tuple[Any, ...]) -> None:
    """One call of the store, in a thread of its own: the deadlines of sends are kept meanwhile."""
    asks = engine.asks
    try:
        in_warm_thread(lambda: asks.make(step, call, None, False))
    except RuntimeError:  # there can be no more threads
        asks.make(step, call, None, False)


def _send(engine: Tended, step: int, request: Request, patience: float | None) -> None:
    """One send for a pool, in a thread of its own."""
    client, carrier, vouched = weakref.ref(engine), engine.carrier(), None if patience is None else engine.asks.vouches()

    def exchange() -> None:
        sure = is_sure(vouched, patience or 0)
        engine = client()  # a client that everybody has dropped meanwhile buys nothing any more
        if engine is None or carrier is None or (patience is not None and not engine.core.begin_send(step, sure)):
            return
        try:
            answer: object = carrier(request)
        except BaseException as error:  # the exception belongs to the caller that waits
            answer = error
        tell(engine.core, step, request, answer)

    try:
        in_warm_thread(exchange)
    except RuntimeError:  # there can be no more threads
        exchange()
