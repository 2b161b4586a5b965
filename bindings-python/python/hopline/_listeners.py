"""The listeners of a client's events: functions to call, streams to read, and the logger."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from sys import modules
from threading import get_ident, main_thread
from types import CodeType
from typing import TYPE_CHECKING, TypeVar

from ._events import Stream
from ._log import DEBUG, listener, log, log_event
from ._told import Event, FailureKind, read_event
from ._values import loads

if TYPE_CHECKING:
    from . import _hopline
    from ._http import Request

S = TypeVar("S", bound=Stream)


class Listeners:
    """Functions, for good, and streams, for as long as they have a reference."""

    def __init__(self) -> None:
        self._calls: list[Callable[[Event], object]] = []
        self._were_added = False
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()

    def are_there(self) -> bool:
        """Returns true if there may be a listener: a function, a stream, or a handler of Python's logging."""
        return self._were_added or ("logging" in modules and listener() is not None)

    def call(self, listener: Callable[[Event], object]) -> None:
        """Adds a function to call with each event from now on."""
        self._calls.append(listener)
        self._were_added = True

    def add(self, stream: S) -> S:
        """Adds a stream for each event from now on."""
        self.streams.add(stream)
        self._were_added = True
        return stream

    def hear(self, news: list[str | _hopline.Exchange]) -> None:
        """Hands out what the core tells: its events, and requests that go out or are over. Nothing depends on events, so no failure comes
        from them.
        """
        if not self._calls and not self.streams and listener() is None:
            return
        for one in news:
            if not isinstance(one, str) and not self._calls and not self.streams and listener(DEBUG) is None:
                continue
            try:
                event = read_event(loads(one)) if isinstance(one, str) else _exchange(*one)
            except Exception:
                _say("an event of Hopline's could not be read")
                continue
            self._tell(event)

    def tell(self, text: str) -> None:
        """Hands out an event of the core."""
        self.hear([text])

    def _tell(self, event: Event) -> None:
        for listen in (log_event, *self._calls, *(stream.put for stream in list(self.streams))):
            try:
                listen(event)
            except BaseException as raised:
                if _is_interrupt(raised):
                    raise
                _say("a listener of Hopline's events raised")


def _say(what: str) -> None:
    try:
        log("exception", what)
    except BaseException as raised:  # of a handler of Python's logging
        if _is_interrupt(raised):
            raise


def _is_interrupt(raised: BaseException) -> bool:
    """Returns true for Ctrl-C and for what a signal handler of the program raised: that comes in the main thread, in whatever runs there. All else
    is a listener's own, and nothing depends on listeners.
    """
    if get_ident() != main_thread().ident:
        return False
    if isinstance(raised, KeyboardInterrupt):
        return True
    signals = modules.get("signal")
    handlers = set() if signals is None else {_code(signals.getsignal(number)) for number in signals.valid_signals()} - {None}
    at = raised.__traceback__ if handlers else None
    while at is not None and at.tb_frame.f_code not in handlers:
        at = at.tb_next
    return at is not None


def _code(handler: object) -> CodeType | None:
    handler = getattr(handler, "func", handler)  # of a partial function
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


def _exchange(request: Request, operation: str, status: int | None, failure: FailureKind | None, seconds: float | None) -> Event:
    """A request that goes out, or (after some seconds) is over."""
    return Event(
        event="sent" if seconds is None else "answered",
        operation=operation,
        method=request.method,
        path="/" + request.url.partition("://")[2].partition("/")[2].partition("?")[0],
        http_status=status,
        failure=failure,
        duration=seconds,
    )


def end(streams: weakref.WeakSet[Stream]) -> None:
    """There will be no more events."""
    for stream in list(streams):
        stream.end()
