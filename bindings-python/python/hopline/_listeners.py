"""Who is told of a client's events: functions that it calls, and streams that are read."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeVar

from ._events import Stream
from ._log import log
from ._told import Event, read_event
from ._values import loads

S = TypeVar("S", bound=Stream)


class Listeners:
    """Functions, for good, and streams, for as long as somebody has them."""

    def __init__(self) -> None:
        self._calls: list[Callable[[Event], object]] = []
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()

    def call(self, listener: Callable[[Event], object]) -> None:
        """Calls it with each event from now on."""
        self._calls.append(listener)

    def add(self, stream: S) -> S:
        """Puts each event from now on into a stream."""
        self.streams.add(stream)
        return stream

    def tell(self, text: str) -> None:
        """One more event. Nothing depends on events, so nothing fails by them."""
        streams = list(self.streams)
        if not self._calls and not streams:
            return
        try:
            event = read_event(loads(text))
        except Exception:
            return log("exception", "an event of Hopline's could not be read")
        for listener in (*self._calls, *(stream.put for stream in streams)):
            try:
                listener(event)
            except Exception:
                log("exception", "a listener of Hopline's events raised")


def end(streams: weakref.WeakSet[Stream]) -> None:
    """There will be no more events."""
    for stream in list(streams):
        stream.end()
