"""Waiting that Ctrl-C ends on every system."""

import sys
import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

T = TypeVar("T")
PATIENCE = 5.0
"""The longest wait, in seconds, for a store by a caller that can't be made to wait longer."""

# Up to Python 3.13 nothing interrupts the wait for a lock on Windows, so there it is cut into pieces.
_PIECE = 0.1 if sys.platform == "win32" and sys.version_info < (3, 14) else None


class Bell:
    """A bell that rings until its waiter has heard it. An event of `threading` takes ten times as long to make, and every call needs one.
    """

    __slots__ = ("_silence",)

    def __init__(self) -> None:
        self._silence = Lock()
        self._silence.acquire()

    def ring(self) -> None:
        """Wakes the waiter, now or later."""
        try:
            self._silence.release()
        except RuntimeError:  # the bell rings already
            return

    def stop(self) -> None:
        """Clears the rings until now."""
        self._silence.acquire(blocking=False)

    def wait(self, seconds: float | None = None) -> None:
        """Waits until the bell rings, for at most that many seconds."""
        if _PIECE is None:
            self._silence.acquire(timeout=-1 if seconds is None else seconds)
            return
        end = None if seconds is None else time.monotonic() + seconds
        left = _PIECE
        while left > 0 and not self._silence.acquire(timeout=left):
            left = _PIECE if end is None else min(_PIECE, end - time.monotonic())


class Later(Generic[T]):
    """A value that becomes known later, in any thread. The futures of Python import its logging, which takes long."""

    __slots__ = ("_calls", "is_known", "is_wanted", "value")

    value: T
    """The value, once it is known."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self.is_known = False
        self.is_wanted = True

    def tell(self, value: T) -> None:
        """Sets the value."""
        self.value, self.is_known = value, True
        self._call()

    def then(self, call: Callable[[], object]) -> None:
        """Calls a function once the value is known."""
        self._calls.append(call)
        if self.is_known:
            self._call()

    def _call(self) -> None:
        # Without a lock, since a finaliser may come in between: the thread that takes a call makes it.
        while self._calls:
            try:
                call = self._calls.popleft()
            except IndexError:  # another thread has taken it
                return
            call()


def wait_for(later: Later[Any], seconds: float) -> bool:
    """Waits for at most that many seconds. Returns true if the value is known."""
    bell = Bell()
    later.then(bell.ring)
    bell.wait(seconds)
    return later.is_known
