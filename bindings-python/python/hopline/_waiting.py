"""Waiting that Ctrl-C ends on every system."""

import sys
import time
from concurrent.futures import Future
from threading import Lock
from typing import Any

# Up to Python 3.13 nothing interrupts the wait for a lock on Windows, so there it is cut into pieces.
_PIECE = 0.1 if sys.platform == "win32" and sys.version_info < (3, 14) else None


class Bell:
    """Rings until the one who waits for it has heard it. An event of `threading` takes ten times as long to make, and every call needs one."""

    __slots__ = ("_silence",)

    def __init__(self) -> None:
        self._silence = Lock()
        self._silence.acquire()

    def ring(self) -> None:
        """Wakes whoever waits, or will."""
        try:
            self._silence.release()
        except RuntimeError:  # it rings already
            return

    def stop(self) -> None:
        """What rang until now is heard."""
        self._silence.acquire(blocking=False)

    def wait(self, seconds: float | None = None) -> None:
        """Waits until it rings, for so many seconds at most."""
        if _PIECE is None:
            self._silence.acquire(timeout=-1 if seconds is None else seconds)
            return
        end = None if seconds is None else time.monotonic() + seconds
        left = _PIECE
        while left > 0 and not self._silence.acquire(timeout=left):
            left = _PIECE if end is None else min(_PIECE, end - time.monotonic())


def wait_for(future: "Future[Any]", seconds: float) -> bool:
    """Waits for so many seconds at most. Whether it is done."""
    bell = Bell()
    future.add_done_callback(lambda _: bell.ring())
    bell.wait(seconds)
    return future.done()
