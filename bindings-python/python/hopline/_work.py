"""The owners that wait for the core, and the results of their commands."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _hopline

if TYPE_CHECKING:
    from types import FrameType


class Taken:
    """The result of a command."""

    __slots__ = ("facts", "failure", "notes", "parts", "reply")

    def __init__(self, reply: object = None, facts: str = "", failure: str | None = None, notes: Sequence[str] = ()) -> None:
        self.reply, self.facts, self.failure, self.notes = reply, facts, failure, notes
        self.parts: Sequence[Taken] = ()
        """Of a common resume: the result of each command."""


class Owner(_hopline.Owner):
    """A thread or task that waits for a command, or does the remaining work of one that needs no waiting."""

    __slots__ = ("taken",)
    taken: Taken
    """The result, once it has come."""


Begin: TypeAlias = Callable[[_hopline.Client, Owner], object]
"""Starts a command for an owner, and returns its first turn, or (anything else) makes a call that needs no waiting."""


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
