"""The work that the core wants done, and the owners that wait for it."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _hopline

if TYPE_CHECKING:
    from types import FrameType

    from ._http import Request
    from ._store_handle import Call


_NEVER_LATE = 2**62
Begin = Callable[[_hopline.Client], int | None]
"""Starts a command, or (`None`) makes a call that needs no waiting."""


alive: weakref.WeakSet[Any] = weakref.WeakSet()
"""The clients of this process."""


def made_at() -> str:
    """The line of the program that makes a client."""
    at: FrameType | None = sys._getframe()
    while at is not None and at.f_globals.get("__name__", "").partition(".")[0] == "hopline":
        at = at.f_back
    return "" if at is None else f"{os.path.basename(at.f_code.co_filename)}:{at.f_lineno}"


def in_the_way() -> str | None:
    """Returns the clients of this process that share a folder, so that one may have a name that another one claims."""
    try:
        engines = list(alive)
    except RuntimeError:  # another thread makes one
        return None
    mine = [engine for engine in engines if engine.folder is not None and not engine.is_closed()]
    places = [one.made_at for one in mine if any(one is not other and one.folder == other.folder for other in mine)]
    return f"clients of this process have the same folder: close the one that is done with; they were made at {', '.join(places)}" if places else None


class Ask:
    """Make a call of the store."""

    __slots__ = ("call", "command", "step")

    def __init__(self, step: int, command: int | None, call: Call) -> None:
        self.step, self.command, self.call = step, command, call


class Send:
    """Send a request."""

    __slots__ = ("begun_at", "command", "is_begun", "operation", "request", "send_before", "step")

    def __init__(self, step: int, command: int, request: Request, send_before: int) -> None:
        self.step, self.command, self.request, self.send_before = step, command, request, send_before
        self.is_begun, self.begun_at, self.operation = False, 0, "request"

    def is_never_late(self) -> bool:
        """Returns true if the request is sent at any time, and whatever the store says."""
        return self.send_before >= _NEVER_LATE

    def patience(self) -> float:
        """Returns the seconds that the store may take to vouch for its claims."""
        return max(min(self.request.timeout, (self.send_before - now()[1]) / 1000), 0)


class Wait:
    """Wait for that many seconds, or (`None`) until woken."""

    __slots__ = ("seconds",)
    __match_args__ = ("seconds",)

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds


class Done:
    """Nothing is left to do."""

    __slots__ = ()


DONE = Done()


class Taken:
    """The result of a command."""

    __slots__ = ("facts", "failure", "notes", "parts", "reply")

    def __init__(self, reply: object = None, facts: str = "", failure: str | None = None, notes: Sequence[str] = ()) -> None:
        self.reply, self.facts, self.failure, self.notes = reply, facts, failure, notes
        self.parts: Sequence[Taken] = ()
        """Of a common resume: the result of each command."""


class Owner:
    """A thread or task that waits for a command, or does the remaining work of one that needs no waiting."""

    __slots__ = (
        "asking",
        "asks",
        "command",
        "completed",
        "exchange",
        "given_up",
        "notes",
        "operation",
        "results",
        "sending",
        "sends",
        "sends_itself",
        "taken",
        "thread",
        "waiting",
        "wake",
    )

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.thread = threading.get_ident()
        self.command: int | None = None
        self.asks: dict[int, Ask] = {}
        """The calls of the store that it is to make, by their steps."""
        self.sends: dict[int, Send] = {}
        """The requests that it is to send, by their steps."""
        self.asking: dict[int, Ask] = {}
        """The calls of the store that it has begun, by their steps."""
        self.sending: dict[int, Send] = {}
        """The requests that it is about to send, by their steps."""
        self.exchange: Send | None = None
        """The request that the owner sends by itself, so that it does nothing else meanwhile."""
        self.notes: list[str] = []
        self.results: list[Any] = []
        """The core's results for its command and the parts of that."""
        self.taken: Taken | None = None
        self.operation = ""
        self.completed = self.waiting = self.given_up = self.sends_itself = False

    def is_done(self) -> bool:
        """Returns true if the owner has nothing left to do."""
        return (self.command is None or self.taken is not None) and not self.asks and not self.asking


class _Process:
    """This process. A system call each time would take a twentieth of a small call."""

    __slots__ = ("id",)

    def __init__(self) -> None:
        self.id = os.getpid()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.id = os.getpid()


process = _Process()


now = _hopline.now
"""Both clocks, in milliseconds."""
