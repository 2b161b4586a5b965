"""The owners in a client, and the distribution of work among them. The engine's lock is held around every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._sends import Sends
from ._work import Ask, Owner, Send

W = TypeVar("W", Ask, Send)


class Owners:
    """The threads and tasks that are in a client, and the work that those that have left did not do."""

    def __init__(self, sends: Sends, wake_thread: Callable[[], None]) -> None:
        self._sends, self._wake_thread = sends, wake_thread
        self.present: set[Owner] = set()
        self.exchanging: set[Owner] = set()
        """The owners that send by themselves."""
        self.by_command: dict[int, Owner] = {}
        self._keeper: Owner | None = None
        """The owner that wakes when the core wants to continue."""
        self._until: int | None = None
        self.left_asks: dict[int, Ask] = {}
        self.left_sends: dict[int, Send] = {}

    def is_attended(self) -> bool:
        """Returns true if an owner is present that does not send by itself, and so does the common work."""
        return len(self.present) > len(self.exchanging)

    def wait(self, owner: Owner, until: int | None) -> bool:
        """Notes that an owner waits. Returns true if it is the one that wakes for all of them by then."""
        owner.waiting = True
        if self._keeper is not None:
            return False
        self._keeper, self._until = owner, until
        return True

    def go_on(self, owner: Owner) -> None:
        """Notes that an owner waits no more."""
        owner.waiting = False
        if self._keeper is owner:
            self._keeper = None

    def leave(self, owner: Owner) -> None:
        """Removes an owner. Its remaining work is left to others."""
        self.end_exchange(owner)
        self.present.discard(owner)
        if owner.command is not None:
            self.by_command.pop(owner.command, None)
        if self._keeper is owner:
            self._keeper = None
            if self._until is not None:
                self.keep_time(self._until)
        # A call that was interrupted twice may or may not have been made.
        if owner.asking or owner.asks or owner.sending or owner.sends:
            move(self.left_asks, owner.asking, owner.asks)
            move(self.left_sends, owner.sending, owner.sends)
        if self.left_asks or self.left_sends:
            self.wake_one(None)

    def begin_exchange(self, owner: Owner, send: Send) -> None:
        """Notes that an owner does nothing else until this is answered."""
        self.exchanging.add(owner)
        owner.exchange = send

    def end_exchange(self, owner: Owner) -> None:
        """Notes that an owner continues."""
        owner.exchange = None
        self.exchanging.discard(owner)

    def wake_one(self, command: int | None) -> None:
        """Wakes one owner for new work: the one that waits for the command, or else any waiting one, first those that still send."""
        if not self.is_attended():
            self._wake_thread()
        owner = None if command is None else self.by_command.get(command)
        if owner is None or not owner.waiting:
            waiting = (other for other in self.present if other.waiting)
            owner = min(waiting, key=lambda other: other.given_up, default=None)
        if owner is not None:
            owner.wake()

    def keep_time(self, until: int) -> None:
        """An owner must wake when the core wants to continue; one is enough."""
        if self._keeper is not None:
            if self._until is None or until < self._until:
                self._keeper.wake()
        elif waiting := next((owner for owner in self.present if owner.waiting), None):
            waiting.wake()

    def next_ask(self, owner: Owner) -> Ask | None:
        """Returns a call of the store to begin: the owner's, or one whose owner is gone."""
        return _begun(owner.asks or self.left_asks, owner.asking)

    def next_send(self, owner: Owner) -> Send | None:
        """Returns a send to begin that was not given up meanwhile: the owner's, or one whose owner is gone."""
        if owner.given_up:
            if wanted := self._sends.wanted(owner.sends):
                self.left_sends.update(wanted)
                self.wake_one(None)
            owner.sends.clear()
            return None
        return self.next_left_send(owner)

    def next_left_send(self, owner: Owner) -> Send | None:
        """Returns a send for an owner that sends for others, too, after it has given up its own."""
        while queue := owner.sends or self.left_sends:
            if (send := _begun(queue, owner.sending)) is None:
                return None
            if send.step in self._sends.out:
                return send
            del owner.sending[send.step]
        return None


def _begun(queue: dict[int, W], begun: dict[int, W]) -> W | None:
    """Begins the first of a queue. INVARIANT: as in `Engine._give`, an interrupt finds it in one of the two."""
    for step in queue:
        work = queue[step]
        begun[step] = work
        del queue[step]
        return work
    return None


def move(to: dict[int, W], *queues: dict[int, W]) -> None:
    """Moves the content of the queues into another one."""
    for queue in queues:
        to.update(queue)
        queue.clear()
