"""Calls of one client's store."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from . import _hopline
from ._store import StoreNotOpened
from ._store_handle import FAILED, NEVER, Answer, StoreHandle, said
from ._troubles import Troubles
from ._waiting import Later
from ._work import Ask, Owner, Send, now

if TYPE_CHECKING:
    from ._leases import Leases


class Asks:
    """Makes calls of the store, outside of the engine's lock, and passes their results to the core."""

    def __init__(self, core: _hopline.Client, lock: threading.RLock, store: StoreHandle | None, leases: Leases) -> None:
        self._core, self._lock, self._store, self._leases = core, lock, store, leases
        self._troubles = Troubles()

    def make(self, owner: Owner, work: Ask) -> None:
        """Makes a call. An interrupt reaches the caller's own thread, once."""
        answer, trouble = FAILED, None
        is_callers = owner.thread == threading.get_ident() and not owner.given_up
        try:
            assert self._store is not None  # the core of a client without a store makes no calls
            answer = self._store.ask(work.call)
        except BaseException as error:
            if is_callers and not isinstance(error, Exception):
                raise
            answer, trouble = NEVER if isinstance(error, StoreNotOpened) else FAILED, said(error)
        if (watch := self._leases.watch) is not None:
            watch.stored(work.call[0])
        self._answered(owner, work, answer, trouble)

    def make_meanwhile(self, owner: Owner, work: Ask) -> None:
        """Makes a call in another thread, in place of an event loop."""
        assert self._store is not None  # as before
        try:
            self._store.asking.submit(lambda: self.make(owner, work))
        except RuntimeError:
            self._answered(owner, work, NEVER, "no thread could be started")

    def _answered(self, owner: Owner, work: Ask, answer: Answer, trouble: str | None) -> None:
        with self._lock:
            if not self._tell(work, answer):
                trouble = "an answer that does not fit"
                self._tell(work, FAILED)
            self._troubles.note(work.call, trouble)
            # Not before: a call that was interrupted until here is made once more.
            owner.asking.pop(work.step, None)
            owner.wake()

    def _tell(self, work: Ask, answer: Answer) -> bool:
        try:
            self._core.stored(work.step, answer, *now())
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    def vouched(self, send: Send) -> Later[bool] | None:
        """Returns whether the store vouches for its claims, which must be known before a request goes out. `None`: they can't end, or the
        request goes out whatever the store says.
        """
        return None if self._store is None or send.is_never_late() else self._store.vouches()

    def troubles_behind(self, failure: str) -> list[str]:
        """Returns the store's own messages if they are the cause of a failure."""
        return self._troubles.behind(failure)
