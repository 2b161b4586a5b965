"""The client core with its surroundings: its lock, its store, and its waiting callers.

Threads and tasks are alike here. Each is an `Owner`, which waits for one command, does the work that its turns give it, and takes the
result. Calls of the store and sends end by themselves, so the owner that began one may give up meanwhile. Nothing in this file waits or
sends.
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
from ._errors import error_of, misuse, refuse, told
from ._events import Stream
from ._leases import Leases
from ._listeners import Listeners, S, end
from ._log import log
from ._owners import Owners, move
from ._sends import Sends, plain
from ._session import Known, SessionReply
from ._store import Lost, Store
from ._store_handle import StoreHandle
from ._told import Event
from ._types import Session
from ._value import Reply
from ._values import Secret
from ._waiting import PATIENCE, Later, wait_for
from ._work import DONE, Ask, Begin, Done, Owner, Send, Taken, Wait, alive, made_at, now, process

if TYPE_CHECKING:
    from ._answers import Span
    from ._http import Transport

T = TypeVar("T")
_NEVER = 1 << 62


class Closable(Protocol):
    """An object that has to be closed."""

    def close(self) -> None:
        """Closes the object."""


class Engine:
    """One client core, for any number of threads and tasks at once."""

    def __init__(self, options: Secret, store: Store | None) -> None:
        self._pid = process.id
        self.made_at = made_at()
        self.folder = getattr(store, "path", None)
        self._lock = threading.RLock()
        self._core = _new_core(options)
        self._store = None if store is None else StoreHandle(store)
        self._closed = False
        self.over: Later[None] = Later()
        """True once the client is closed, and its store has released everything."""
        self._last: int | None = None
        """The last command that was begun."""
        self._due: int | None = None
        """The time at which the core wants to continue, at the last look."""
        self._ended: set[int] = set()
        self._sends = Sends(self._core)
        self._todo: list[Any] = []
        """The core's steps that no owner has got yet."""
        self._background = Background(self)
        self._owners = Owners(self._sends, self._background.wake)
        self.listeners = Listeners()
        self.leases: Leases = Leases(self)
        self.asks = Asks(self._core, self._lock, self._store, self.leases)
        self.span: Callable[[str], Span] | None = None
        """Makes the span of an operation, if spans are wanted."""
        self._sessions: weakref.WeakValueDictionary[str, Known] = weakref.WeakValueDictionary()
        """The sessions with a handle."""
        self.closing: weakref.WeakSet[Closable] = weakref.WeakSet()
        """The objects to close with the client."""
        self._finalizer = weakref.finalize(self, _dropped, self._pid, self.made_at, self._store, self._background.wake, self.listeners.streams)
        self._finalizer.atexit = False  # the system frees what an ended process had
        alive.add(self)
        if self._store is not None:
            self._store.tell(_losing(weakref.ref(self)))

    # The life of a command.

    def enter(self, owner: Owner, operation: str, begin: Begin) -> None:
        """Adds an owner, so that the client does not finish before it has left, and starts its command. Without a command the owner does
        the remaining work.
        """
        if self.listeners.are_there():
            self._core.listen()
            self._sends.are_told = True
        with self._lock:
            self._check_closed(operation)  # closed meanwhile
            self._owners.present.add(owner)
            try:
                owner.command = command = begin(self._core)
            except BaseException:
                if (begun := self._core.last()) is not None and begun != self._last:  # the command was interrupted when it had begun
                    owner.command = self._last = begun
                    self._owners.by_command[begun] = owner
                raise
            owner.operation = operation
            if command is not None:
                self._last = command
                self._owners.by_command[command] = owner
                if command in self._ended:  # the command was begun before an owner waited for it
                    owner.completed = True
                    self._ended.discard(command)

    def turn(self, owner: Owner) -> Ask | Send | Wait | Done:
        """Returns the owner's next work."""
        if self._pid != process.id:
            refuse("client", "forked")
        events: list[str] = []
        with self._lock:
            work = self._turn(owner, events)
        if events or self._sends.news:
            self._tell(events)
        return work

    def _tell(self, events: Sequence[str] = ()) -> None:
        """Reports the events to listeners. No lock is held."""
        for event in events:
            self.listeners.tell(event)
        while self._sends.news:
            try:
                news = self._sends.news.pop(0)
            except IndexError:  # another thread has reported it
                return
            self.listeners.tell_exchange(*news)

    def _turn(self, owner: Owner, events: list[str]) -> Ask | Send | Wait | Done:
        self._owners.go_on(owner)
        sends, at = self._sends, now()
        sends.expire(at)
        until = self._drain(owner, events, at)
        if self.leases.dropped:  # after the commands that were begun before
            self.leases.give_dropped_back(self._core)
            until = self._drain(owner, events, at)
        if owner.completed and owner.taken is None and owner.command is not None:
            owner.taken = self._take(owner, owner.command)
            # Taking a result lets its record be deleted.
            until = self._drain(owner, events, at)
        # The store first: a purchase may wait for it.
        work: Ask | Send | Wait | Done | None = self._owners.next_ask(owner) or self._owners.next_send(owner)
        if work is None:
            until = sends.soonest(until)
            if owner.is_done():
                work = DONE
            elif self._owners.wait(owner, until):
                return _wait(until)
            else:
                work = Wait(None)
        if until is not None:
            self._owners.keep_time(until)
        return work

    def _drain(self, owner: Owner, events: list[str], at: tuple[int, int]) -> int | None:
        todo = self._todo
        self._due = self._core.poll(*at, todo)
        while todo:
            self._give(todo, todo[0], owner, events)
        return self._due

    def _give(self, todo: list[Any], step: _hopline._Step, owner: Owner, events: list[str]) -> None:
        """Gives the first work to an owner.

        INVARIANT: An owner that is interrupted here, by Ctrl-C or to run a finaliser that uses the client, has either given the work away
        or not. An interrupt comes where something is called, so nothing is called from the look at `todo` on.
        """
        if step[0] == "completed":
            command = step[1]
            if waiting := self._owners.by_command.get(command):
                if waiting is not owner:
                    waiting.wake()
                waiting.completed = True
            else:
                self._ended.add(command)
            if todo and todo[0] is step:
                del todo[0]
        elif step[0] == "send":
            send, out = Send(*step[1:]), self._sends.out
            sender = self._owners.by_command.get(send.command, owner)
            if sender.given_up or sender.exchange is not None:
                sends = self._owners.left_sends
                self._owners.wake_one(None)
            else:
                sends = sender.sends
                if sender is not owner:
                    sender.wake()
            if todo and todo[0] is step:
                del todo[0]
                out[send.step] = sends[send.step] = send
        elif step[0] == "store":
            ask = Ask(*step[1:])
            asker = owner if ask.command is None else self._owners.by_command.get(ask.command, owner)
            if asker.exchange is not None:
                asker = owner
            if asker is not owner:
                asker.wake()
            if todo and todo[0] is step:
                del todo[0]
                asker.asks[ask.step] = ask
        else:
            events.append(step[1])
            if todo and todo[0] is step:
                del todo[0]

    def _take(self, owner: Owner, command: int) -> Taken:
        results = owner.results
        if owner.given_up and not results:
            # No caller gets the result, so its record is to stay.
            result = self._core.result(command)
            self._core.abandon(command, *now())
            return self._taken(owner, result, owner.notes)
        if not results:
            self._core.take(command, results)
        taken = self._taken(owner, results[0], owner.notes)
        if owner.operation == "acquire" and isinstance(taken.reply, Reply):
            self.leases.granted(command, taken.reply.raw)
        if owner.operation == "resume_all" and isinstance(taken.reply, Reply):
            # An interrupt finds all of them taken or none.
            for part in taken.reply.raw[len(results) - 1 :]:
                self._core.take(part, results)
            taken.parts = [self._taken(owner, result, []) for result in results[1:]]
        return taken

    def _taken(self, owner: Owner, result: _hopline._Taken | None, notes: list[str]) -> Taken:
        if result is None:
            misuse("client", "the result was taken before")
        if result[0] == "answered":
            if isinstance(result[1], Session) and (known := self._sessions.get(result[1].session_id)) is not None:
                known.take_in(result[1], owner.operation)
            return Taken(result[1], result[2])
        return Taken(failure=result[1], notes=notes + self.asks.troubles_behind(result[1]))

    def leave(self, owner: Owner) -> bool:
        """Removes an owner. Returns true if the client is to be finished, since it was the last owner of a closed one."""
        if self.is_forked():
            return False
        with self._lock:
            self._owners.leave(owner)
            if not self._owners.is_attended():
                self._attend(self._sends.soonest(self._due))
            return self._closed and not self._owners.present

    def _attend(self, until: int | None) -> None:
        """If no owner does the remaining work, a thread does."""
        if self._closed:
            return
        if self._owners.left_asks or self._owners.left_sends:
            self._background.start()
        elif until is not None:
            self._background.look(until)

    # The results of work.

    def begin(self, owner: Owner, work: Send, vouched: Later[bool] | None, is_here: bool = False) -> bool:
        """Returns whether a request is to go out now, and whether the owner does nothing else before it is answered. Nothing is sent under
        names that another client may own by now; a store that does not vouch in time does not know.
        """
        is_sure = vouched is None or (vouched.is_known and vouched.value)
        if vouched is not None:
            vouched.is_wanted = False
        with self._lock:
            is_begun, sender = self._sends.begin(work, is_sure), self._owners.by_command.get(work.command)
            if is_begun:
                if sender is not None:
                    work.operation = sender.operation
                if is_here:
                    self._owners.begin_exchange(owner, work)
                until = self._sends.soonest(self._due)
                if not self._owners.is_attended():
                    self._attend(until)
                elif until is not None:
                    self._owners.keep_time(until)
            else:
                if not is_sure and sender is not None:
                    sender.notes.append("the store did not vouch for its claims")
                self._owners.wake_one(work.command)
        if self._sends.news:
            self._tell()
        return is_begun

    def answered(self, work: Send, answer: Any) -> None:
        """Takes the outcome of a send: a response, an exception, or neither. Objects of the caller are read without the lock."""
        answer = plain(work, answer)
        with self._lock:
            owner = self._owners.by_command.get(work.command)
            is_own = owner is not None and owner.exchange is work
            # An owner that sends by itself continues by itself.
            if self._sends.answered(work, answer, [] if owner is None else owner.notes) and not is_own:
                self._owners.wake_one(work.command)
            if owner is not None and is_own:
                self._owners.end_exchange(owner)
        if self._sends.news:
            self._tell()

    def give_up(self, owner: Owner) -> None:
        """Cancels the owner's command: nothing more is sent for it, a request that may have been sent stays in doubt, and its record is
        kept. Work on until it is done.
        """
        self._check_fork("client")
        with self._lock:
            owner.given_up = True
            self._cancel(owner.command)
            if (send := owner.exchange) is not None:  # the request broke off with its owner, even if others wait for it
                self._owners.end_exchange(owner)
                self._owners.wake_one(None)
                self._sends.break_off(send.step)

    def do_again(self, owner: Owner) -> None:
        """Gives back interrupted work: a call of the store is made once more, which does no harm, and a request that was about to be sent
        was not sent.
        """
        with self._lock:
            for step, send in list(owner.sending.items()):
                if send.is_begun:
                    self._sends.break_off(step)
            move(owner.asks, owner.asking)
            move(owner.sends, owner.sending)

    def _cancel(self, command: int | None) -> None:
        """The core names the request to break off, unless another command waits for the same."""
        step = None if command is None else self._core.cancel(command, *now())
        if step is None:
            return
        for given in [given for given in self._todo if given[:2] == ("send", step)]:
            self._todo.remove(given)
            self._sends.out[step] = Send(*given[1:])
        self._sends.break_off(step)

    # The state of the client.

    def call(self, operation: str, ask: Callable[[_hopline.Client], T]) -> T:
        """Asks the core a question that needs no waiting."""
        self.check(operation)
        with self._lock:
            return ask(self._core)

    def check(self, operation: str) -> None:
        """Checks that the client can be used here, before any lock, which a fork may have left taken."""
        self._check_fork(operation)
        self._check_closed(operation)

    def _check_closed(self, operation: str) -> None:
        if self._closed:
            refuse(operation, "closed")

    def _check_fork(self, operation: str) -> None:
        if self._pid != process.id:
            refuse(operation, "forked")

    def is_forked(self) -> bool:
        """Returns true if this process is a child of the one that made the client."""
        return self._pid != process.id

    def follows(self, session_id: str) -> bool:
        """Returns true if this client follows a session, which has not ended as far as it knows."""
        return self.call("saved", lambda core: core.follows(session_id))

    def know(self, found: SessionReply) -> Known:
        """The newest state of a session that was opened, which is kept for as long as it has a handle."""
        with self._lock:
            return self._sessions.setdefault(found.session_id, Known(found.session, found.phase))

    def tend(self, owner: Owner) -> Ask | Send | Wait | None:
        """Work while no caller waits for a command: a store that failed is called again when its time has come, and the answers of requests
        that are still out are stored.
        """
        events: list[str] = []
        with self._lock:
            self._owners.present.discard(owner)
            tended = self._tend(owner, events)
        self._tell(events)
        return tended

    def _tend(self, owner: Owner, events: list[str]) -> Ask | Send | Wait | None:
        carrier = self._background.carrier
        if self._closed or (carrier is None and self._owners.is_attended()):
            move(self._owners.left_asks, owner.asks)
            self._owners.wake_one(None)
            self._background.stop()
            return None
        while carrier is None and self._owners.left_sends and not self._owners.present:  # no caller waits for their answers
            self._sends.break_off(self._owners.left_sends.popitem()[0])
        at = now()
        self._sends.expire(at)
        due = self._drain(owner, events, at)
        if self.leases.dropped:
            self.leases.give_dropped_back(self._core)
            due = self._drain(owner, events, at)
        until = self._sends.soonest(due)
        if (work := self._owners.next_ask(owner)) is not None:
            self._owners.present.add(owner)
            return work
        if carrier is not None and (send := self._owners.next_left_send(owner)) is not None:
            return send
        if until is None and carrier is None:
            self._background.stop()
            return None
        self._background.until = _NEVER if until is None else until
        return _wait(until)

    # The needs of pools.

    def carry(self, carrier: Transport | None) -> None:
        """Lets a thread work for pools from now on, with this transport; or (`None`) ends that, since there is no pool any more."""
        with self._lock:
            self._background.carrier = carrier
            if not self._closed:
                self._background.start()

    def carrier(self) -> Transport | None:
        """The transport for pools."""
        return self._background.carrier

    def of_pools(self, ask: Callable[[_hopline.Client], T], closed: T) -> T:
        """Asks the core a question about a pool that needs no waiting, and carries out the steps that follow. A client that is closed has
        no pools.
        """
        if self.is_forked():
            return closed
        with self._lock:
            found = closed if self._closed else told(ask, self._core)
        self.look()
        return found

    def look(self) -> None:
        """Wakes the background thread, which may have work for a pool. No lock is needed."""
        self._background.wake()

    def lost(self, names: Sequence[str] | None) -> None:
        """Takes the end of the store's claims: of these names, or of all."""
        if self.is_forked():
            return
        if (watch := self.leases.watch) is not None:
            watch.lost(len(self.leases.out) if names is None else len(names))
        with self._lock:
            if self._closed:
                return
            self._core.lost(None if names is None else list(names), *now())
            self._sends.lose()
            self._owners.wake_one(None)
            if not self._owners.is_attended():
                self._background.start()

    def close(self) -> bool:
        """Cancels everything that is under way and keeps its records. Returns true if the client is to be finished, since no caller waits
        in it.
        """
        if self.is_forked():
            return False
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            self._background.wake()
            for owner in list(self._owners.by_command.values()):
                self._cancel(owner.command)
                owner.wake()
            end(self.listeners.streams)
            return not self._owners.present

    def is_closed(self) -> bool:
        """True if the client can't be used any more."""
        return self._closed or self.is_forked()

    def is_to_finish(self) -> bool:
        """Returns true if the client is closed, and no caller waits in it any more."""
        with self._lock:
            return self._closed and not self._owners.present

    def finish(self) -> None:
        """Finishes a closed client that no caller waits in any more: the store releases everything. Only the first call does this, and no
        caller waits here until it is over.
        """
        if self._finalizer.detach() is not None:
            for one in list(self.closing):
                one.close()
            if self._store is None:
                self.over.tell(None)
            else:
                self._store.close().then(lambda: self.over.tell(None))

    def say_not_over(self) -> None:
        """Warns people that a client took too long to finish."""
        log("warning", "a client was closed, but a call or its store does not end; what it has is not free before that")

    def is_used_here(self) -> bool:
        """Returns true if this thread itself waits for a command, so that it must not wait for the client to finish."""
        with self._lock:
            return any(owner.thread == threading.get_ident() for owner in self._owners.present)

    # Events.

    def stream(self, make: Callable[[], S]) -> S:
        """Returns the events from now on, for as long as the stream has a reference."""
        self.check("events")
        with self._lock:
            self._core.listen()
            self._sends.are_told = True
            return self.listeners.add(make())

    def listen(self, listener: Callable[[Event], object]) -> None:
        """Calls a function with each event from now on."""
        self._core.listen()
        self._sends.are_told = True
        self.listeners.call(listener)


def _wait(until: int | None) -> Wait:
    return Wait(None if until is None else max(until - now()[1], 1) / 1000)


def _new_core(options: Secret) -> _hopline.Client:
    """Makes a client core, with entropy of its own. No traceback shows its options."""
    return told(lambda: _hopline.Client(options.reveal(), urandom(16)))


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
