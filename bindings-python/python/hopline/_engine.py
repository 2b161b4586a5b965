"""The client core with what surrounds it: its lock, its records, and who waits for what.

Threads and tasks are all alike here: each is an `Owner`, which waits for one command, does the work that its turns give it,
and takes the result. Nothing in this file waits or sends.
"""

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from . import _hopline
from ._errors import HoplineError, misuse
from ._facts import Event, Rejected, Saved
from ._http import Failed, Request, Response
from ._http._base import named
from ._records import Records, new_core, said
from ._store import Store
from ._values import Misfit, Secret
from ._work import Owner, Save, Send, Taken, Wait, now

T = TypeVar("T")
_log = logging.getLogger("hopline")


class Engine:
    """One client core, for any number of threads and tasks at once."""

    def __init__(self, options: Secret, store: Store, same_account: bool, capped: bool) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._core = new_core(options)
        self.records = Records(options, store, same_account, capped)
        if capped:
            # What clients that are no more have spent today counts from the first purchase on.
            self.records.adopt(self._core, lambda saved: False)
        self._closed = False
        self._owners: dict[int, Owner] = {}
        self._keeper: Owner | None = None
        self._until: int | None = None
        self._ended: set[int] = set()
        self.listeners: list[Callable[[Event], object]] = []
        self.closers: list[Callable[[], object]] = []

    # What a command goes through.

    def enter(self, owner: Owner, operation: str, begin: Callable[[_hopline.Client], int] | None) -> None:
        """Starts a command for its owner, or (`None`) nothing but what is left to do."""
        with self._lock:
            if owner.intent is not None:
                self.records.claim_intent(self._core, operation, owner.intent)
            if begin is not None:
                owner.command = begin(self._core)
                self._owners[owner.command] = owner
                # One that was resumed before anybody waited for it may have ended meanwhile.
                owner.completed = owner.command in self._ended
                self._ended.discard(owner.command)

    def turn(self, owner: Owner) -> Save | Send | Wait:
        """What the owner is to do next. `Wait` with `taken` set means that all is done."""
        events: list[str] = []
        with self._lock:
            work = self._turn(owner, events)
        for event in events:
            self._tell(event)
        return work

    def _turn(self, owner: Owner, events: list[str]) -> Save | Send | Wait:
        owner.waiting = False
        if self._keeper is owner:
            self._keeper = None
        until = self._drain(owner, events)
        if owner.completed and owner.taken is None and owner.command is not None:
            owner.taken = self._take(owner)
            # To take a result lets its record be deleted.
            until = self._drain(owner, events)
        if owner.inbox:
            owner.out = owner.inbox.popleft()
            self._keep_time(until)
            return owner.out
        if owner.command is None or owner.taken is not None:
            self._keep_time(until)
            return Wait(None)
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
                    owner.inbox.append(Save(step_id, record, data))
                case ("send", step_id, command, method, url, headers, body, timeout, send_before, max_body):
                    request = Request(
                        method=method, url=url, headers=dict(headers), body=body, timeout=timeout / 1000, max_body=max_body
                    )
                    sender = self._owners.get(command, owner)
                    sender.inbox.append(Send(step_id, request, send_before))
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

    def _keep_time(self, until: int | None) -> None:
        """Somebody who waits must wake when the core wants to go on; one is enough."""
        if until is None:
            return
        if self._keeper is not None:
            if self._until is None or until < self._until:
                self._keeper.wake()
        elif waiting := next((owner for owner in self._owners.values() if owner.waiting), None):
            waiting.wake()

    def _take(self, owner: Owner) -> Taken:
        taken = None if owner.command is None else self._core.take(owner.command)
        match taken:
            case ("answered", facts, raw, phase, view):
                return Taken(facts=facts, raw=raw, phase=phase, view=view)
            case ("failed", failure):
                return Taken(failure=failure, notes=owner.notes)
        misuse("client", "the result was taken before")

    def leave(self, owner: Owner) -> None:
        """The owner waits no more."""
        with self._lock:
            if owner.command is not None:
                self._owners.pop(owner.command, None)
            if self._keeper is owner:
                self._keeper = None
                self._keep_time(self._until)
            if owner.intent is not None or self.records.loose:
                self.records.free_intents(self._core, {other.intent for other in self._owners.values()})
            if self._closed and not self._owners:
                self.records.shelf.close()

    # What comes of work.

    def kept(self, owner: Owner, work: Save, trouble: OSError | None) -> None:
        """A record is kept, or it is not certain that it is."""
        with self._lock:
            owner.out = None
            if trouble is None:
                self._core.saved(work.step, *now())
                self.records.loose |= work.data is None
            else:
                for one in {id(one): one for one in (owner, *self._owners.values())}.values():
                    one.notes.append(f"the store said: {said(trouble)}")
                self._core.fail(work.step, "store", "never", *now())

    def answered(self, owner: Owner, work: Send, answer: Any) -> None:
        """What came of a send: a response, an exception, or something that is neither."""
        with self._lock:
            owner.out = None
            failure = answer if isinstance(answer, Failed) else None
            if isinstance(answer, Response):
                try:
                    self._core.respond(
                        work.step, answer.status, named(answer.headers), bytes(answer.body), answer.truncated, *now()
                    )
                    return
                except (TypeError, ValueError, AttributeError, OverflowError) as error:
                    owner.notes.append(f"the transport's response could not be read: {type(error).__name__}")
            elif isinstance(answer, BaseException) and failure is None:
                owner.notes.append(f"the transport raised {type(answer).__name__}, whose text is left out since it may hold secrets")
            elif failure is None:
                owner.notes.append(f"the transport returned `{type(answer).__name__}` where a hopline.Response was due")
            kind, sent = (failure.kind, failure.sent) if failure else ("other", "maybe")
            try:
                self._core.fail(work.step, kind, sent, *now())
            except (TypeError, ValueError):
                self._core.fail(work.step, "other", "maybe", *now())

    def is_late(self, work: Send) -> bool:
        """Whether the core must decide anew, since it took too long to come to this."""
        return now()[1] > work.send_before

    def abandon(self, owner: Owner, why: BaseException) -> None:
        """The owner gives up: its command is cancelled, what may have been sent stays in doubt, its record is kept. What comes
        of it stands in the notes of why it did."""
        with self._lock:
            if owner.command is None:
                return
            out, owner.out = owner.out, None
            self._core.cancel(owner.command, *now())
            if isinstance(out, Send):
                self._core.fail(out.step, "aborted", "maybe", *now())
            elif out is not None:
                owner.inbox.appendleft(out)  # to keep it once more does no harm
            while not isinstance(work := self.turn(owner), Wait):
                if isinstance(work, Save):
                    self.kept(owner, work, self.records.keep(work))
                else:
                    self._core.fail(work.step, "aborted", "never", *now())
        if owner.taken is not None and owner.taken.failure is not None:
            why.add_note(str(HoplineError._parse(owner.taken.failure)))

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
        return self.call("saved", lambda core: Saved._parse(core.saved_list()) + self.records.free()[0])

    def follows(self, session_id: str) -> bool:
        """Whether this client follows a session, which has not ended as far as it knows."""
        held = self.call("saved", lambda core: Saved._parse(core.saved_list()))
        return any(saved.session_id == session_id and saved.holds == "session" for saved in held)

    def rejected(self) -> list[Rejected]:
        """The free records of the store that are none of this account's, or unreadable."""
        return self.call("rejected", lambda core: self.records.free()[1])

    def adopt(self, wanted: Callable[[Saved], bool]) -> None:
        """Takes up the free records that are wanted."""
        with self._lock:
            self.records.adopt(self._core, wanted)

    def close(self) -> None:
        """Gives up what is under way, keeps its records, and gives the store back."""
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for owner in list(self._owners.values()):
                if owner.command is not None:
                    self._core.cancel(owner.command, *now())
                owner.aborted = True
                owner.wake()
            if not self._owners:
                self.records.shelf.close()
            for closer in self.closers:
                closer()

    def _tell(self, text: str) -> None:
        if not self.listeners:
            return
        try:
            event = Event._parse(text)
        except Misfit:
            return
        for listener in list(self.listeners):
            try:
                listener(event)
            except Exception:  # nothing depends on events, so nothing may fail by them
                _log.exception("a listener of Hopline's events raised")
