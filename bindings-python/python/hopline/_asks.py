"""Calls of one client's store."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from . import _hopline
from ._store import StoreNotOpened
from ._store_handle import FAILED, NEVER, Answer, Call, StoreHandle, said
from ._troubles import Troubles
from ._waiting import Later, wait_for

if TYPE_CHECKING:
    from ._leases import Leases


class Asks:
    """Makes calls of the store, outside of any lock, and passes their results to the core."""

    def __init__(self, core: _hopline.Client, store: StoreHandle | None, leases: Leases) -> None:
        self._core, self._store, self._leases = core, store, leases
        self._troubles, self._lock = Troubles(), threading.RLock()

    def make(self, step: int, call: Call, owner: _hopline.Owner | None, is_callers: bool) -> _hopline.Turn | None:
        """Makes a call, and returns the next turn of an owner. An interrupt reaches the caller's own thread, once."""
        answer, trouble = FAILED, None
        try:
            assert self._store is not None  # the core of a client without a store makes no calls
            answer = self._store.ask(call)
        except BaseException as error:
            if is_callers and not isinstance(error, Exception):
                raise
            answer, trouble = NEVER if isinstance(error, StoreNotOpened) else FAILED, said(error)
        turn = self._tell(step, call, answer, trouble, owner)
        if (watch := self._leases.watch) is not None:
            watch.stored(call[0])
        return turn

    def make_meanwhile(self, step: int, call: Call) -> None:
        """Makes a call in another thread, in place of an event loop."""
        assert self._store is not None  # as before
        try:
            self._store.asking.submit(lambda: self.make(step, call, None, False))
        except RuntimeError:
            self._tell(step, call, NEVER, "no thread could be started", None)

    def _tell(self, step: int, call: Call, answer: Answer, trouble: str | None, owner: _hopline.Owner | None) -> _hopline.Turn | None:
        # Before the core has it: a failure that follows names the store's trouble.
        self._note(call, trouble)
        try:
            return self._core.stored(step, answer, owner)
        except (TypeError, ValueError, OverflowError):
            self._note(call, "an answer that does not fit")
            return self._core.stored(step, FAILED, owner)

    def vouches(self) -> Later[bool] | None:
        """Returns whether the store vouches for its claims, which must be known before a request goes out."""
        return None if self._store is None else self._store.vouches()

    def troubles_behind(self, failure: str) -> list[str]:
        """Returns the store's own messages if they are the cause of a failure."""
        with self._lock:
            return self._troubles.behind(failure)

    def _note(self, call: Call, trouble: str | None) -> None:
        with self._lock:
            self._troubles.note(call, trouble)


def is_sure(vouched: Later[bool] | None, patience: float) -> bool:
    """Waits until the store vouches for its claims. A store that does not do so in time does not know."""
    if vouched is None:
        return True
    wait_for(vouched, patience)
    return was_sure(vouched)


def was_sure(vouched: Later[bool]) -> bool:
    """Returns whether the store has vouched by now. A later answer is not wanted."""
    vouched.is_wanted = False
    return vouched.is_known and vouched.value
