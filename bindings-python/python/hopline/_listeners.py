"""The listeners of a client's events: functions to call, streams to read, and the logger."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from sys import modules
from time import monotonic_ns
from typing import TYPE_CHECKING, TypeVar

from ._events import Stream
from ._log import DEBUG, listener, log, log_event
from ._told import Event, FailureKind, read_event
from ._values import loads

if TYPE_CHECKING:
    from ._work import Send

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

    def tell(self, text: str) -> None:
        """Hands out an event of the core. Nothing depends on events, so no failure comes from them."""
        if not self._calls and not self.streams and listener() is None:
            return
        try:
            event = read_event(loads(text))
        except Exception:
            return log("exception", "an event of Hopline's could not be read")
        self._tell(event)

    def tell_exchange(self, send: Send, status: int | None = None, failure: FailureKind | None = None) -> None:
        """Reports a request that goes out, or (with a status or a failure) is over."""
        if not self._calls and not self.streams and listener(DEBUG) is None:
            return
        is_over = status is not None or failure is not None
        duration = (monotonic_ns() - send.begun_at) / 1e9 if is_over else None
        path = "/" + send.request.url.partition("://")[2].partition("/")[2].partition("?")[0]
        self._tell(
            Event(
                event="answered" if is_over else "sent",
                operation=send.operation,
                method=send.request.method,
                path=path,
                http_status=status,
                failure=failure,
                duration=duration,
            )
        )

    def _tell(self, event: Event) -> None:
        for listen in (log_event, *self._calls, *(stream.put for stream in list(self.streams))):
            try:
                listen(event)
            except Exception:
                log("exception", "a listener of Hopline's events raised")


def end(streams: weakref.WeakSet[Stream]) -> None:
    """There will be no more events."""
    for stream in list(streams):
        stream.end()
