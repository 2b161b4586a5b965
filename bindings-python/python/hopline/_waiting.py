"""Waiting that Ctrl-C ends on every system."""

import sys
import threading
import time

# Up to Python 3.13 nothing interrupts the wait for a lock on Windows, so there it is cut into pieces.
_PIECE = 0.1 if sys.platform == "win32" and sys.version_info < (3, 14) else None


def wait(woken: threading.Event, seconds: float | None) -> None:
    """Waits until woken, for so many seconds at most."""
    if _PIECE is None:
        woken.wait(seconds)
        return
    end = None if seconds is None else time.monotonic() + seconds
    while not woken.is_set():
        left = _PIECE if end is None else min(_PIECE, end - time.monotonic())
        if left <= 0:
            return
        woken.wait(left)
