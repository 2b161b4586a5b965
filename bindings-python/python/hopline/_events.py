"""The events of a client as an iterator: from its creation until the client is closed, or the iterator dropped."""

from __future__ import annotations

from collections import deque
from typing import Self

from ._told import Event
from ._waiting import Bell

_MOST = 1000


class Stream:
    """Keeps the events that were not taken yet, the latest 1000 of them."""

    __slots__ = ("__weakref__", "_events", "_is_over", "dropped")

    dropped: int
    """The number of events that were dropped, the oldest first, since they were not taken in time."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._is_over = False
        self.dropped = 0

    def put(self, event: Event) -> None:
        """Adds an event."""
        if not self._is_over:
            self._events.append(event)
            if len(self._events) > _MOST:
                self._events.popleft()
                self.dropped += 1
            self._wake()

    def end(self) -> None:
        """Ends the stream."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        raise NotImplementedError


class Events(Stream):
    """Events for a thread. Iterating waits for the next one, and ends when the client is closed; waiting events still come."""

    __slots__ = ("_bell",)

    def __init__(self) -> None:
        super().__init__()
        self._bell = Bell()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while True:
            try:
                event = self._events.popleft()
            except IndexError:
                if self._is_over:
                    self._bell.ring()  # another thread may iterate, too
                    raise StopIteration from None
                self._bell.wait()
            else:
                self._bell.ring()
                return event

    def close(self) -> None:
        """Ends the stream. Dropping it does the same."""
        self.end()
        self._events.clear()

    def _wake(self) -> None:
        self._bell.ring()


class AsyncEvents(Stream):
    """Events for a task. Iterating waits for the next one, and ends when the client is closed; waiting events still come."""

    __slots__ = ("_loop", "_woken")

    def __init__(self) -> None:
        import asyncio

        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            self._woken.clear()
            if self._events:
                return self._events.popleft()
            if self._is_over:
                raise StopAsyncIteration
            await self._woken.wait()

    async def aclose(self) -> None:
        """Ends the stream. Dropping it does the same."""
        self.end()
        self._events.clear()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._woken.set)
        except RuntimeError:  # the loop is closed, and nobody listens
            return
