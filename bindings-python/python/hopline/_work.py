"""What the core wants done, and who waits for it."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ._http import Request
from ._store import Call


@dataclass(slots=True)
class Ask:
    """Make a call of the store."""

    step: int
    command: int | None
    call: Call = field(repr=False)


@dataclass(slots=True)
class Send:
    """Send a request."""

    step: int
    command: int
    request: Request
    send_before: int
    is_begun: bool = False


@dataclass(slots=True)
class Wait:
    """Wait so many seconds, or (`None`) until woken."""

    seconds: float | None


@dataclass(slots=True)
class Done:
    """Nothing is left to do."""


@dataclass(slots=True)
class Taken:
    """What a command ended with. It prints nothing, since an answer may hold secrets."""

    failure: str | None = field(default=None, repr=False)
    facts: str = field(default="", repr=False)
    raw: str = field(default="", repr=False)
    phase: str | None = field(default=None, repr=False)
    view: str | None = field(default=None, repr=False)
    notes: list[str] = field(default_factory=list, repr=False)


class Owner:
    """A thread or task that waits for a command, or does what is left to do of one that needs no waiting."""

    __slots__ = ("asking", "asks", "command", "completed", "given_up", "notes", "sending", "sends", "taken", "thread", "waiting", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.thread = threading.get_ident()
        self.command: int | None = None
        self.asks: deque[Ask] = deque()
        self.sends: deque[Send] = deque()
        self.asking: dict[int, Ask] = {}
        """The calls of the store that it has begun, by their steps."""
        self.sending: dict[int, Send] = {}
        """The requests that it is about to send, by their steps."""
        self.notes: list[str] = []
        self.taken: Taken | None = None
        self.completed = self.waiting = self.given_up = False

    def is_done(self) -> bool:
        """Whether nothing is left that it has to see to."""
        return (self.command is None or self.taken is not None) and not self.asks and not self.asking


def now() -> tuple[int, int]:
    """Both clocks, in milliseconds."""
    return time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
