"""The listeners of a client's events: functions to call, streams to read, and the logger."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from sys import modules
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
                log("exception", "an event of Hopline's could not be read")
                continue
            self._tell(event)

    def tell(self, text: str) -> None:
        """Hands out an event of the core."""
        self.hear([text])

    def _tell(self, event: Event) -> None:
        for listen in (log_event, *self._calls, *(stream.put for stream in list(self.streams))):
            try:
                listen(event)
            except Exception:
                log("exception", "a listener of Hopline's events raised")


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
