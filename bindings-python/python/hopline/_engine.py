"""The client core with its surroundings: its store, its listeners, its background work, and its end. Nothing in this file waits or sends.

Threads and tasks are alike here: each is an `Owner`, and the core says who does which work (`hopline::turns`). A call of the core is one
step, which an interrupt can only precede or follow.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from os import urandom
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from . import _hopline
from ._asks import Asks
from ._background import Background
from ._errors import misuse, refuse, told
from ._events import Stream
from ._leases import Leases
from ._listeners import Listeners, S, end
from ._log import log
from ._session import Known, SessionReply
from ._store import Lost, Store
from ._store_handle import StoreHandle
from ._told import Event
from ._types import Session
from ._value import Reply
from ._values import Secret
from ._waiting import PATIENCE, Later, wait_for
from ._work import Owner, Taken, alive, made_at, process

if TYPE_CHECKING:
    from ._answers import Span
    from ._http import Transport

T = TypeVar("T")


class Closable(Protocol):
    """An object that has to be closed."""

    def close(self) -> None:
        """Closes the object."""


class Engine:
    """One client core, for any number of threads and tasks at once."""

    def __init__(self, options: Secret, store: Store | None) -> None:
        self.pid = process.id
        self.made_at = made_at()
        self.folder = getattr(store, "path", None)
        self._lock = threading.RLock()
        """For what is beside the core: leases and sessions."""
        self.core = _new_core(options, getattr(store, "vouches", None) is not None)
        self._store = None if store is None else StoreHandle(store)
        self.is_shut = False
        """True once the client is closed."""
        self.over: Later[None] = Later()
        """True once the client is closed, and its store has released everything."""
        self.is_heard = False
        """True once the core tells events."""
        self.listeners = Listeners()
        self._background = Background(self)
        self.leases: Leases = Leases(self)
        self.asks = Asks(self.core, self._store, self.leases)
        self.core.serve(self.listeners.hear, self._background.look, self._background.wake)
        self.span: Callable[[str], Span] | None = None
        """Makes the span of an operation, if spans are wanted."""
        self.tasks: set[object] = set()
        """The tasks that work for the client: an event loop does not keep its tasks alive. One whose loop is closed goes with the client."""
        self._sessions: weakref.WeakValueDictionary[str, Known] = weakref.WeakValueDictionary()
        """The sessions with a handle."""
        self._knows = False
        """True once there was one."""
        self.closing: weakref.WeakSet[Closable] = weakref.WeakSet()
        """The objects to close with the client."""
        self._is_finished = False
        """True once its store is about to release everything."""
        self._finalizer = weakref.finalize(self, _dropped, self.pid, self.made_at, self._store, self._background.wake, self.listeners.streams)
        self._finalizer.atexit = False  # the system frees what an ended process had
        alive.add(self)
        if self._store is not None:
            self._store.tell(_losing(weakref.ref(self)))

    def taken(self, owner: Owner) -> Taken | None:
        """Returns the result of an owner's command, if it has one; the first call takes it in."""
        if (taken := getattr(owner, "taken", None)) is not None or (results := owner.results) is None or owner.command is None:
            return taken
        if not results:
            misuse("client", "the result was taken before")
        taken = self._taken(owner, results[0], owner.notes)
        if owner.operation == "acquire" and isinstance(taken.reply, Reply):
            with self._lock:
                self.leases.granted(owner.command, taken.reply.raw)
        taken.parts = [self._taken(owner, result, []) for result in results[1:]] if len(results) > 1 else ()
        owner.taken = taken
        return taken

    def _taken(self, owner: Owner, result: _hopline.Result, notes: list[str]) -> Taken:
        if result[0] == "failed":
            return Taken(failure=result[1], notes=notes + self.asks.troubles_behind(result[1]))
        if self._knows and isinstance(result[1], Session):
            with self._lock:
                if (known := self._sessions.get(result[1].session_id)) is not None:
                    known.take_in(result[1], owner.operation)
        return Taken(result[1], result[2])

    # The state of the client.

    def call(self, operation: str, ask: Callable[[_hopline.Client], T]) -> T:
        """Asks the core a question that needs no waiting."""
        self.check(operation)
        return ask(self.core)

    def check(self, operation: str) -> None:
        """Checks that the client can be used here."""
        if self.pid != process.id:
            refuse(operation, "forked")
        if self.is_shut:
            refuse(operation, "closed")

    def is_forked(self) -> bool:
        """Returns true if this process is a child of the one that made the client."""
        return self.pid != process.id

    def follows(self, session_id: str) -> bool:
        """Returns true if this client follows a session, which has not ended as far as it knows."""
        return self.call("saved", lambda core: core.follows(session_id))

    def know(self, found: SessionReply) -> Known:
        """The newest state of a session that was opened, which is kept for as long as it has a handle."""
        with self._lock:
            self._knows = True
            return self._sessions.setdefault(found.session_id, Known(found.session, found.phase))

    # The needs of pools.

    def carry(self, carrier: Transport | None) -> None:
        """Lets a thread work for pools from now on, with this transport; or (`None`) ends that, since there is no pool any more."""
        self._background.carrier = carrier
        self.core.carry(carrier is not None)

    def carrier(self) -> Transport | None:
        """The transport for pools."""
        return self._background.carrier

    def of_pools(self, ask: Callable[[_hopline.Client], T], closed: T, gives_back: bool = False) -> T:
        """Asks the core a question about a pool that needs no waiting, and carries out the steps that follow. A client that is closed has
        no pools; but it takes back what is lent as long as it still ends sessions.
        """
        if self.is_forked():
            return closed
        with self._lock:
            found = closed if (self._is_finished if gives_back else self.is_shut) else told(ask, self.core)
        self.look()
        return found

    def gives_dropped_back(self) -> bool:
        """Gives back the leases that were dropped, after the commands that were begun before. Returns true if there were any."""
        if not self.leases.dropped:
            return False
        with self._lock:
            self.leases.give_dropped_back(self.core)
        return True

    def look(self) -> None:
        """Wakes the background thread, which may have work for a pool, or who still ends sessions of a closed client. No lock is needed."""
        if self.is_shut and not self._is_finished and not self.is_forked():
            self.core.look()
        self._background.wake()

    def lost(self, names: Sequence[str] | None) -> None:
        """Takes the end of the store's claims: of these names, or of all."""
        if self.is_forked():
            return
        self.core.lost(None if names is None else list(names))
        if (watch := self.leases.watch) is not None:
            watch.lost(len(self.leases.out) if names is None else len(names))

    def close(self) -> bool:
        """Cancels everything that is under way but terminations, and keeps its records. Returns true if the client is to be finished, since no caller waits
        in it.
        """
        if self.is_forked():
            return False
        self.is_shut = True
        # Each time, since an interrupt may have broken the first one off.
        is_to_finish = self.core.close()
        end(self.listeners.streams)
        return is_to_finish

    def is_closed(self) -> bool:
        """True if the client can't be used any more."""
        return self.is_shut or self.is_forked()

    def finish(self) -> None:
        """Finishes a closed client that no caller waits in any more: the store releases everything. No caller waits here until it is over. A
        call after one that was interrupted does the rest.
        """
        if self.over.is_known or self._is_finished:
            return
        self._finalizer.detach()
        for one in list(self.closing):
            one.close()
        if self._store is None:
            self.over.tell(None)
        else:
            self._store.close().then(lambda: self.over.tell(None))
        self._is_finished = True

    def say_not_over(self) -> None:
        """Warns people that a client took too long to finish."""
        log("warning", "a client was closed, but a call or its store does not end; what it has is not free before that")

    def is_used_here(self) -> bool:
        """Returns true if this thread itself waits for a command, so that it must not wait for the client to finish."""
        return self.core.is_used_by(threading.get_ident())

    # Events.

    def hear(self) -> None:
        """Lets the core tell events, if there may be a listener."""
        if self.listeners.are_there():
            self.is_heard = True
            self.core.listen()

    def stream(self, make: Callable[[], S]) -> S:
        """Returns the events from now on, for as long as the stream has a reference."""
        self.check("events")
        self.is_heard = True
        self.core.listen()
        return self.listeners.add(make())

    def listen(self, listener: Callable[[Event], object]) -> None:
        """Calls a function with each event from now on."""
        self.is_heard = True
        self.core.listen()
        self.listeners.call(listener)


def _new_core(options: Secret, can_vouch: bool) -> _hopline.Client:
    """Makes a client core, with entropy of its own. No traceback shows its options."""
    return told(lambda: _hopline.Client(options.reveal(), urandom(16), can_vouch))


def _losing(client: weakref.ref[Engine]) -> Lost:
    """Returns the function that a store calls when its claims have ended. The function keeps no client alive."""

    def lost(names: Sequence[str] | None = None, /) -> None:
        if (engine := client()) is not None:
            engine.lost(names)

    return lost


def _dropped(pid: int, made_at: str, store: StoreHandle | None, wake: Callable[[], None], streams: weakref.WeakSet[Stream]) -> None:
    """Releases everything of a client without references. A child of a fork has nothing of it."""
    if pid != process.id:
        return None if store is None else store.leave()
    wake()
    if store is not None and not wait_for(store.close(), PATIENCE):
        log("warning", "a client was dropped, but its store does not let go; what it has is not free before that")
    end(streams)
    # Last, since a warning may be an error.
    where = f", which was made at {made_at}," if made_at else ""
    warnings.warn(f"a hopline client{where} was dropped without being closed; close it, or use it in a `with` block", ResourceWarning, 2)
