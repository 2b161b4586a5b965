"""What the clients of both APIs do: records, events, and their end. One class for threads, and one for tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Self, TypeAlias, TypeVar, overload

from ._answers import read_any, read_saved, read_value, stands_for_nothing
from ._bases import AsyncCaller, Caller, in_core_words
from ._engine import Begin, Engine
from ._errors import HoplineError, invalid
from ._events import AsyncEvents, Events
from ._facts import Event, Saved
from ._http import AsyncTransport, Transport, choose, choose_async, own
from ._order import OrderReply
from ._session import AsyncOpenSession, OpenSession, SessionReply
from ._value import Reply
from ._values import dumps
from ._work import Taken

Resumed: TypeAlias = OpenSession | OrderReply | Reply
"""What was resumed: a session, an order or an answer."""
AsyncResumed: TypeAlias = AsyncOpenSession | OrderReply | Reply
"""What a task resumed: a session, an order or an answer."""
B = TypeVar("B", bound="Blocking")
T = TypeVar("T", bound="Tasks")


class Blocking(Caller):
    """A client for threads."""

    __slots__ = ()

    def saved(self) -> list[Saved]:
        """What the store holds: purchases under way and in doubt, sessions, orders, and intents that were accepted. Nothing is sent."""
        return list(self.walk_saved())

    def walk_saved(self) -> Iterator[Saved]:
        """The same, read from the store as it is iterated over, 500 at a time."""
        after = None
        while True:
            entries, after = read_saved(self._run("saved", lambda core, after=after: core.saved(after)))  # type: ignore[misc]
            yield from entries
            if after is None:
                return

    @overload
    def resume(
        self,
        record: str,
        *,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> Resumed: ...

    @overload
    def resume(
        self,
        *,
        intent: str,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> Resumed | None: ...

    def resume(
        self,
        record: str | None = None,
        *,
        intent: str | None = None,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> Resumed | None:
        """Goes on with what a record holds, or with what an intent stands for.

        Args:
            record: The record, as an error or `saved` names it.
            intent: Your own name for it, in place of a record. If it stands for nothing, nothing is sent and the result is `None`.
            deadline: Seconds to wait in all for a session or an order; 300 if left out.
            credentials: Whether a session's username and password are to be read.
            ends: Further statuses that end the wait.
            keep: Whether a session lives on when its `with` block is left. A static one always does.

        Raises what it ended with, if that is not an answer: `Ended` for a session that is over, and `Misuse` for an unknown record.
        """
        taken = self._run("resume", _resuming(record, intent, _options(deadline, credentials, ends)))
        if intent is not None and stands_for_nothing(taken):
            return None
        found = self._read(taken, keep)
        if isinstance(found, HoplineError):
            raise found
        return found

    def resume_all(
        self,
        *,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
    ) -> list[Resumed | HoplineError]:
        """Goes on with what no living client has, including what processes that crashed have left, 16 at a time. Failures of single ones
        are in the list.

        Every doubt that can be sent again is resumed. Sessions and orders that were begun without an intent are taken back and waited
        for; this client holds the sessions until they are over, or it releases them. Sessions and orders with an intent are left to
        whoever starts it. Where several workers share a store, each takes a part.

        Args:
            deadline: Seconds to wait in all for each session or order; 300 if left out.
            credentials: Whether usernames and passwords of sessions are to be read.
            ends: Further statuses that end the wait.

        Raises `StoreError` if the store can't be read.
        """
        options = _options(deadline, credentials, ends)
        taken = self._run("resume_all", lambda core: core.resume_all(options))
        read_value(taken)
        return [self._read(part, False) for part in taken.parts]

    def settle(self, record: str, *, happened: bool, became: str | int | None = None, early: bool = False) -> bool:
        """Closes a doubt by hand, once you know what happened. Returns whether there was one.

        Args:
            record: The record, as an error or `saved` names it.
            happened: Whether it took effect. If not, the record goes and the intent is free.
            became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to be
                waited for goes on with that, by its intent or record; anything else is what the intent answers with.
            early: Settles as not happened within an hour of the last send, too. The request may still be under way: then what it buys
                is lost sight of.

        Raises `Refused` if the record has changed since you looked at it, or if it is too early, and `Busy` if another client has it.
        """
        what = None if became is None else str(became)
        return bool(read_value(self._run("settle", lambda core: core.settle(record, happened, what, early))))

    def forget(self, record: str) -> bool:
        """Forgets a session, an order that nobody waits for, an accepted intent, or a record that can't be used. Returns whether there was
        one. What is in doubt stays.

        Raises `Refused` if the record has changed since you looked at it, and `Busy` if another client has it.
        """
        return bool(read_value(self._run("forget", lambda core: core.forget(record))))

    def events(self) -> Events:
        """Events from now on, until the client is closed. At most 1000 wait to be taken; `dropped` counts those that were lost."""
        return self._engine.stream(Events)

    def close(self, timeout: float = 10) -> None:
        """Gives up what is under way and keeps its records; the store lets go of all that this client has. No session and no order ends by
        it. Waits for calls in other threads and for the store, for `timeout` seconds at most; what takes longer ends by itself, and a
        warning is logged.
        """
        engine = self._engine
        if engine.close():
            engine.finish()
        if not engine.is_forked() and not engine.is_used_here():
            engine.wait_until_over(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attach(self, send: Transport, engine: Engine, on_event: Callable[[Event], object] | None) -> None:
        self._send, self._engine = send, engine
        own(send, engine.closing)
        if on_event is not None:
            engine.listeners.append(on_event)

    def _for_tasks(self, kind: type[T], http: Any) -> T:
        other = kind.__new__(kind)
        other._attach(choose_async(http), self._engine, None)
        return other

    def _read(self, taken: Taken, keep: bool) -> Resumed | HoplineError:
        found = read_any(taken)
        return OpenSession._of(found, lambda: self._end(found, keep)) if isinstance(found, SessionReply) else found


def _options(deadline: float | None, credentials: bool | None, ends: Sequence[str] | None) -> str:
    return dumps(in_core_words({"deadline": deadline, "credentials": credentials, "ends": ends}))


def _resuming(record: str | None, intent: str | None, options: str) -> Begin:
    if intent is not None and record is None:
        return lambda core: core.resume_intent(intent, options)
    if record is None or intent is not None:
        invalid("resume", "intent", "or a record must be given, and not both")
    return lambda core: core.resume(record, options)


class Tasks(AsyncCaller):
    """A client for tasks."""

    __slots__ = ()

    async def saved(self) -> list[Saved]:
        """What the store holds: purchases under way and in doubt, sessions, orders, and intents that were accepted. Nothing is sent."""
        return [one async for one in self.walk_saved()]

    async def walk_saved(self) -> AsyncIterator[Saved]:
        """The same, read from the store as it is iterated over, 500 at a time."""
        after = None
        while True:
            entries, after = read_saved(await self._run("saved", lambda core, after=after: core.saved(after)))  # type: ignore[misc]
            for one in entries:
                yield one
            if after is None:
                return

    @overload
    async def resume(
        self,
        record: str,
        *,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> AsyncResumed: ...

    @overload
    async def resume(
        self,
        *,
        intent: str,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> AsyncResumed | None: ...

    async def resume(
        self,
        record: str | None = None,
        *,
        intent: str | None = None,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
        keep: bool = False,
    ) -> AsyncResumed | None:
        """Goes on with what a record holds, or with what an intent stands for.

        Args:
            record: The record, as an error or `saved` names it.
            intent: Your own name for it, in place of a record. If it stands for nothing, nothing is sent and the result is `None`.
            deadline: Seconds to wait in all for a session or an order; 300 if left out.
            credentials: Whether a session's username and password are to be read.
            ends: Further statuses that end the wait.
            keep: Whether a session lives on when its `with` block is left. A static one always does.

        Raises what it ended with, if that is not an answer: `Ended` for a session that is over, and `Misuse` for an unknown record.
        """
        taken = await self._run("resume", _resuming(record, intent, _options(deadline, credentials, ends)))
        if intent is not None and stands_for_nothing(taken):
            return None
        found = self._read(taken, keep)
        if isinstance(found, HoplineError):
            raise found
        return found

    async def resume_all(
        self,
        *,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
    ) -> list[AsyncResumed | HoplineError]:
        """Goes on with what no living client has, including what processes that crashed have left, 16 at a time. Failures of single ones
        are in the list.

        Every doubt that can be sent again is resumed. Sessions and orders that were begun without an intent are taken back and waited
        for; this client holds the sessions until they are over, or it releases them. Sessions and orders with an intent are left to
        whoever starts it. Where several workers share a store, each takes a part.

        Args:
            deadline: Seconds to wait in all for each session or order; 300 if left out.
            credentials: Whether usernames and passwords of sessions are to be read.
            ends: Further statuses that end the wait.

        Raises `StoreError` if the store can't be read.
        """
        options = _options(deadline, credentials, ends)
        taken = await self._run("resume_all", lambda core: core.resume_all(options))
        read_value(taken)
        return [self._read(part, False) for part in taken.parts]

    async def settle(self, record: str, *, happened: bool, became: str | int | None = None, early: bool = False) -> bool:
        """Closes a doubt by hand, once you know what happened. Returns whether there was one.

        Args:
            record: The record, as an error or `saved` names it.
            happened: Whether it took effect. If not, the record goes and the intent is free.
            became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to be
                waited for goes on with that, by its intent or record; anything else is what the intent answers with.
            early: Settles as not happened within an hour of the last send, too. The request may still be under way: then what it buys
                is lost sight of.

        Raises `Refused` if the record has changed since you looked at it, or if it is too early, and `Busy` if another client has it.
        """
        what = None if became is None else str(became)
        return bool(read_value(await self._run("settle", lambda core: core.settle(record, happened, what, early))))

    async def forget(self, record: str) -> bool:
        """Forgets a session, an order that nobody waits for, an accepted intent, or a record that can't be used. Returns whether there was
        one. What is in doubt stays.

        Raises `Refused` if the record has changed since you looked at it, and `Busy` if another client has it.
        """
        return bool(read_value(await self._run("forget", lambda core: core.forget(record))))

    def events(self) -> AsyncEvents:
        """Events from now on, until the client is closed. At most 1000 wait to be taken; `dropped` counts those that were lost."""
        return self._engine.stream(AsyncEvents)

    async def close(self, timeout: float = 10) -> None:
        """Gives up what is under way and keeps its records; the store lets go of all that this client has. No session and no order ends by
        it. Waits for other calls and for the store, for `timeout` seconds at most; what takes longer ends by itself, and a warning is
        logged.
        """
        from ._tasks import waited

        engine = self._engine
        if engine.close():
            engine.finish()
        if not engine.is_forked():
            await waited(engine.over, timeout)
            if not engine.over.is_known:
                engine.say_not_over()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _attach(self, send: AsyncTransport, engine: Engine, on_event: Callable[[Event], object] | None) -> None:
        from ._tasks import Disk

        self._send, self._engine, self._disk = send, engine, Disk()
        own(send, engine.closing)
        engine.closing.add(self._disk)
        if on_event is not None:
            engine.listeners.append(on_event)

    def _for_threads(self, kind: type[B], http: Any) -> B:
        other = kind.__new__(kind)
        other._attach(choose(http), self._engine, None)
        return other

    def _read(self, taken: Taken, keep: bool) -> AsyncResumed | HoplineError:
        found = read_any(taken)
        return AsyncOpenSession._of(found, lambda: self._end(found, keep)) if isinstance(found, SessionReply) else found
