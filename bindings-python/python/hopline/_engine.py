"""The client core with what surrounds it: its lock, its records, and who waits for what.

Threads and tasks are alike here. Each is an `Owner`, which waits for one command, does the work that its turns give it, and takes
the result. Saves and sends end by themselves, so whoever began one may give up meanwhile. Nothing in this file waits or sends.
"""

import logging
import os
import threading
import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from . import _hopline
from ._errors import HoplineError, misuse
from ._events import Stream
from ._facts import Event, Rejected, Saved
from ._records import Records, new_core, said
from ._sends import Sends
from ._store import Store
from ._values import Secret, loads
from ._work import Done, Owner, Save, Send, Taken, Wait, now

S = TypeVar("S", bound=Stream)
T = TypeVar("T")
_log = logging.getLogger("hopline")
_MOST_TROUBLES = 64


class Closable(Protocol):
    """Something that has to be closed."""

    def close(self) -> None:
        """Closes it."""


class Engine:
    """One client core, for any number of threads and tasks at once."""

    def __init__(self, options: Secret, store: Store, same_account: bool, capped: bool) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._core = new_core(options)
        self.records = Records(options, store, same_account, capped)
        self._taking = threading.Lock()
        """Held from when records are looked for until the core has them, so that nobody begins anew what another is taking up. It is
        taken before the engine's lock, and by an event loop only where the store does not wait for a disk."""
        if capped:
            # What clients that have ended spent today counts from the first purchase on.
            self._take_from_store(self.records.take_totals)
        self._closed = False
        self._claiming = 0
        self._present: set[Owner] = set()
        self._used: Counter[str] = Counter()
        """The intents of those who are present."""
        self._owners: dict[int, Owner] = {}
        self._keeper: Owner | None = None
        self._until: int | None = None
        self._ended: set[int] = set()
        self._sends = Sends(self._core)
        self._left_saves: deque[Save] = deque()
        self._left_sends: deque[Send] = deque()
        """What an owner left undone that others may wait for."""
        self._troubles: dict[str, str] = {}
        self.listeners: list[Callable[[Event], object]] = []
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self.closing: weakref.WeakSet[Closable] = weakref.WeakSet()
        """What is to be closed with the client."""
        self._finalizer = weakref.finalize(self, _dropped, self._pid, self.records.shelf.close, self._streams)
        self._finalizer.atexit = False  # the system frees what an ended process held

    # What a command goes through.

    def admit(self, owner: Owner, operation: str) -> None:
        """The owner is here, so its intent is in use, and the client does not finish before it has left."""
        self.check(operation)
        with self._lock:
            self.check(operation)
            self._present.add(owner)
            if owner.intent is not None:
                self._used[owner.intent] += 1

    def claim(self, owner: Owner, operation: str) -> None:
        """Makes the owner's intent this client's, with what is stored under it. It may read the disk, without the engine's lock."""
        if (intent := owner.intent) is not None:
            self._take_from_store(lambda: self.records.claim_intent(operation, intent))
            with self._lock:
                if owner not in self._present:  # it gave up meanwhile
                    self._free_intents()

    def enter(self, owner: Owner, operation: str, begin: Callable[[_hopline.Client], int | None] | None) -> None:
        """Starts a command for its owner. Where there is none to start, the owner does what is left to do."""
        with self._lock:
            if begin is not None:
                self.check(operation)  # it may have been closed while the store was read
            owner.command = None if begin is None else begin(self._core)
            if owner.command is not None:
                self._owners[owner.command] = owner
                # One that was resumed before anybody waited for it may have ended meanwhile.
                owner.completed = owner.command in self._ended
                self._ended.discard(owner.command)

    def turn(self, owner: Owner) -> Save | Send | Wait | Done:
        """What the owner is to do next."""
        events: list[str] = []
        with self._lock:
            work = self._turn(owner, events)
        for event in events:
            self._tell(event)
        return work

    def _turn(self, owner: Owner, events: list[str]) -> Save | Send | Wait | Done:
        owner.waiting = False
        if self._keeper is owner:
            self._keeper = None
        self._sends.expire()
        until = self._drain(owner, events)
        if owner.completed and owner.taken is None and owner.command is not None:
            owner.taken = self._take(owner)
            # To take a result lets its record be deleted.
            until = self._drain(owner, events)
        # Saves first: somebody's purchase may wait for one.
        if owner.saves or self._left_saves:
            work = (owner.saves or self._left_saves).popleft()
            owner.saving[work.step] = work
            self._keep_time(until)
            return work
        while (send := self._next_send(owner)) is not None:
            if self._sends.begin(send):
                self._keep_time(self._sends.soonest(until))
                return send
            until = self._drain(owner, events)
        if owner.saves or (owner.completed and owner.taken is None):
            return self._turn(owner, events)
        until = self._sends.soonest(until)
        if owner.is_done():
            self._keep_time(until)
            return Done()
        owner.waiting = True
        if self._keeper is None:
            self._keeper, self._until = owner, until
            return Wait(None if until is None else max(until - now()[1], 1) / 1000)
        self._keep_time(until)
        return Wait(None)

    def _drain(self, owner: Owner, events: list[str]) -> int | None:
        while True:
            step = self._core.poll(*now())
            match step:
                case ("wait", until):
                    return until
                case ("save", step_id, record, data):
                    owner.saves.append(Save(step_id, record, data))
                case ("send", *_):
                    send = self._sends.add(step)
                    sender = self._owners.get(send.command, owner)
                    if sender.given_up:
                        self._left_sends.append(send)
                        self._wake_one(None)
                    else:
                        sender.sends.append(send)
                        self._wake(sender, owner)
                case ("completed", command):
                    if waiting := self._owners.get(command):
                        waiting.completed = True
                        self._wake(waiting, owner)
                    else:
                        self._ended.add(command)
                case ("notify", event):
                    events.append(event)

    def _wake(self, other: Owner, owner: Owner) -> None:
        if other is not owner:
            other.wake()

    def _wake_one(self, command: int | None) -> None:
        """There is something to do: whoever waits for the command does it, or else anybody who waits, first those who still send."""
        owner = None if command is None else self._owners.get(command)
        if owner is None or not owner.waiting:
            waiting = (other for other in self._present if other.waiting)
            owner = min(waiting, key=lambda other: other.given_up, default=None)
        if owner is not None:
            owner.wake()

    def _keep_time(self, until: int | None) -> None:
        """Somebody who waits must wake when the core wants to go on; one is enough."""
        if until is None:
            return
        if self._keeper is not None:
            if self._until is None or until < self._until:
                self._keeper.wake()
        elif waiting := next((owner for owner in self._present if owner.waiting), None):
            waiting.wake()

    def _take(self, owner: Owner) -> Taken:
        taken = None
        if owner.command is not None and owner.given_up:
            # Nobody gets what it was done as, so its record is to stay.
            taken = self._core.result(owner.command)
            self._core.abandon(owner.command)
        elif owner.command is not None:
            taken = self._core.take(owner.command)
        match taken:
            case ("answered", facts, raw, phase, view):
                return Taken(facts=facts, raw=raw, phase=phase, view=view)
            case ("failed", failure):
                return Taken(failure=failure, notes=owner.notes + self._trouble_behind(failure))
        misuse("client", "the result was taken before")

    def leave(self, owner: Owner) -> None:
        """The owner waits no more."""
        with self._lock:
            self._present.discard(owner)
            if owner.intent is not None:
                self._used[owner.intent] -= 1
                if not self._used[owner.intent]:
                    del self._used[owner.intent]
                self.records.left(owner.intent)
            if owner.command is not None:
                self._owners.pop(owner.command, None)
            if self._keeper is owner:
                self._keeper = None
                self._keep_time(self._until)
            # Of a save that was interrupted twice nobody knows whether it is kept.
            self._left_saves.extend((*owner.saving.values(), *owner.saves))
            self._left_sends.extend(owner.sends)
            if self._left_saves or self._left_sends:
                self._wake_one(None)
            self._free_intents()
            if self._closed and not self._present:
                self._finish()

    def _free_intents(self) -> None:
        if not self._claiming:
            self.records.free_intents(self._used.__contains__, self._core.holds_intent)

    # What comes of work.

    def kept(self, owner: Owner, work: Save, trouble: OSError | None) -> None:
        """A record is kept, or it is not certain that it is."""
        with self._lock:
            owner.saving.pop(work.step, None)
            if trouble is None:
                self._core.saved(work.step, *now())
                self.records.kept(work)
            else:
                self._troubles.pop(work.record, None)
                self._troubles[work.record] = said(trouble)
                if len(self._troubles) > _MOST_TROUBLES:
                    del self._troubles[next(iter(self._troubles))]
                self._core.fail(work.step, "store", "never", *now())
            owner.wake()

    def _trouble_behind(self, failure: str) -> list[str]:
        """What the store said, where that is why a command failed."""
        error: dict[str, Any] = loads(failure) if self._troubles else {}
        if error.get("kind") != "store":
            return []
        latest = next(reversed(self._troubles.values()))
        return [f"the store said: {self._troubles.get(error.get('record', ''), latest)}"]

    def _next_send(self, owner: Owner) -> Send | None:
        """A send to begin that nobody gave up meanwhile: the owner's, or one whose owner is gone."""
        if owner.given_up:
            wanted = self._sends.wanted(owner.sends)
            owner.sends.clear()
            if wanted:
                self._left_sends.extend(wanted)
                self._wake_one(None)
            return None
        return self._sends.next(owner.sends, self._left_sends)

    def answered(self, work: Send, answer: Any) -> None:
        """What came of a send: a response, an exception, or something that is neither."""
        with self._lock:
            owner = self._owners.get(work.command)
            if self._sends.answered(work, answer, [] if owner is None else owner.notes):
                self._wake_one(work.command)

    def give_up(self, owner: Owner) -> None:
        """The owner's command is cancelled: nothing more is sent for it, what may have been sent stays in doubt, and its record is
        kept. Work on until it is done."""
        with self._lock:
            owner.given_up = True
            self._cancel(owner.command)

    def cancel(self, command: int) -> None:
        """Cancels a command, whoever waits for it."""
        with self._lock:
            self._cancel(command)
            self._wake_one(command)

    def _cancel(self, command: int | None) -> None:
        """The core names the request to break off, unless somebody else waits for the same."""
        step = None if command is None else self._core.cancel(command, *now())
        if step is not None:
            self._sends.break_off(step)

    def save_again(self, owner: Owner) -> None:
        """What was being saved when the thread was interrupted is to be saved once more, which does no harm."""
        with self._lock:
            owner.saves.extendleft(owner.saving.values())
            owner.saving.clear()

    # What is known.

    def call(self, operation: str, ask: Callable[[_hopline.Client], T]) -> T:
        """Asks the core for something that needs no waiting."""
        self.check(operation)
        with self._lock:
            return ask(self._core)

    def ask(self, operation: str, ask: Callable[[_hopline.Client], T]) -> T:
        """The same for what the core may refuse, whose error is raised."""

        def asked(core: _hopline.Client) -> T | HoplineError:
            try:
                return ask(core)
            except ValueError as error:
                return HoplineError._parse(str(error))

        found = self.call(operation, asked)
        if isinstance(found, HoplineError):
            raise found
        return found

    def check(self, operation: str) -> None:
        """Whether the client can be used, here and now. Before any lock, which a fork may have left taken."""
        if self._pid != os.getpid():
            misuse(operation, "this client was made before the process was forked; make one of its own after the fork")
        if self._closed:
            misuse(operation, "this client is closed")

    def saved(self) -> list[Saved]:
        """What this client holds, and what no living client of its store does."""
        held = self.call("saved", lambda core: Saved._parse(core.saved_list()))
        # A record that this client refused is free, and told by both.
        known = {one.record for one in held}
        return held + [one for one in self.records.free()[0] if one.record not in known]

    def rejected(self) -> list[Rejected]:
        """The free records of the store that are none of this account's, or unreadable."""
        self.check("rejected")
        return self.records.free()[1]

    def follows(self, session_id: str) -> bool:
        """Whether this client follows a session, which has not ended as far as it knows."""
        return self.call("saved", lambda core: core.follows(session_id))

    def take_up(self, operation: str, record: str) -> None:
        """Takes up one record, if no living client has it."""
        self._take_up(operation, lambda: self.records.take_up(record))

    def take_up_all(self, operation: str) -> None:
        """Takes up every free record."""
        self._take_up(operation, self.records.take_up_all)

    def _take_up(self, operation: str, claim: Callable[[], None]) -> None:
        self.check(operation)
        with self._lock:
            self._claiming += 1  # their intents are claimed before the core knows of them
        try:
            self._take_from_store(claim)
        finally:
            with self._lock:
                self._claiming -= 1
                # Those of records that are another client's, or were refused.
                self._free_intents()

    def _take_from_store(self, claim: Callable[[], None]) -> None:
        """Gives the core what is claimed, or the store all of it back."""
        with self._taking:
            try:
                claim()
                with self._lock:
                    self.records.restore(self._core)
            finally:
                with self._lock:
                    self.records.give_back()

    def close(self) -> None:
        """Gives up what is under way, keeps its records, and gives the store back."""
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for owner in list(self._owners.values()):
                self._cancel(owner.command)
                owner.wake()
            for stream in list(self._streams):
                stream.end()
            if not self._present:
                self._finish()

    def _finish(self) -> None:
        """The client is closed, and nobody waits in it any more."""
        self._finalizer.detach()
        self.records.shelf.close()
        for one in list(self.closing):
            one.close()

    # What is told.

    def stream(self, make: Callable[[], S]) -> S:
        """Events from now on, for as long as somebody has the stream."""
        self.check("events")
        with self._lock:
            stream = make()
            self._streams.add(stream)
            return stream

    def _tell(self, text: str) -> None:
        streams = list(self._streams)
        if not self.listeners and not streams:
            return
        try:
            event = Event._parse(text)
        except Exception:  # nothing depends on events, so nothing may fail by them
            return _log.exception("an event of Hopline's could not be read")
        for listener in (*self.listeners, *(stream.put for stream in streams)):
            try:
                listener(event)
            except Exception:
                _log.exception("a listener of Hopline's events raised")


def _dropped(pid: int, close: Callable[[], object], streams: weakref.WeakSet[Stream]) -> None:
    """A client that nobody has any more gives back what it had. A child of a fork has nothing of it."""
    if pid == os.getpid():
        close()
        for stream in list(streams):
            stream.end()
        # Last, since a warning may be an error.
        warnings.warn("a hopline client was dropped without being closed; close it, or use it in a `with` block", ResourceWarning, 2)


def explain(operation: str, owner: Owner, why: BaseException) -> None:
    """Notes on the exception what came of a command that was given up for it."""
    if owner.taken is None:
        return
    if owner.taken.failure is not None:
        return why.add_note(str(HoplineError._parse(owner.taken.failure)))
    facts = loads(owner.taken.facts)
    ids = [f"{name} `{facts[name]}`" for name in ("session_id", "order_no") if facts.get(name)]
    why.add_note(f"{operation}: it was done before it was given up" + "".join(f"; {one}" for one in ids))
