"""What the clients of both APIs do: records, events, and their end. One class for threads, and one for tasks."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn, Self, TypeAlias, TypeVar, overload

from ._answers import read_any
from ._bases import AsyncCaller, Caller, in_core_words
from ._engine import Engine
from ._errors import HoplineError, invalid
from ._events import AsyncEvents, Events
from ._facts import Event, Rejected, Saved
from ._http import AsyncTransport, Transport, choose, choose_async, own
from ._order import OrderReply
from ._run import Begin, Disk, run, run_async
from ._session import AsyncOpenSession, OpenSession, SessionReply
from ._values import Reply, dumps
from ._waiting import wait
from ._work import Taken

Resumed: TypeAlias = OpenSession | OrderReply | Reply
"""What was resumed: a session, an order or an answer."""
AsyncResumed: TypeAlias = AsyncOpenSession | OrderReply | Reply
"""What a task resumed: a session, an order or an answer."""
B = TypeVar("B", bound="Blocking")
T = TypeVar("T", bound="Tasks")
_MOST_THREADS = 64


class Blocking(Caller):
    """A client for threads."""

    __slots__ = ()

    def saved(self) -> list[Saved]:
        """What the store holds: what this client has, and what no living client has. Nothing is sent."""
        return self._engine.saved()

    def rejected(self) -> list[Rejected]:
        """Records of the store that this client leaves alone, such as those of another account."""
        return self._engine.rejected()

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
        options = _options(deadline, credentials, ends)
        if record is None:
            taken = self._resumed_intent(_named(intent), options)
            if taken is None:
                return None
        elif intent is not None:
            _one_of_both()
        else:
            self._engine.take_up("resume", record)
            taken = self._run("resume", lambda core: core.resume(record, options), {})
        found = self._read(taken, keep)
        if isinstance(found, HoplineError):
            raise found
        return found

    def resume_all(self) -> list[Resumed | HoplineError]:
        """Goes on with everything in the store that can be resumed and that no living client has, including what processes that
        crashed have left. Nothing is raised: failures are in the list.

        The records that it takes up stay this client's until it is closed. Where several workers share a store, let one of them call
        this, and let the others resume their own intents.
        """
        self._engine.take_up_all("resume_all")
        commands = self._engine.call("resume_all", lambda core: core.resume_all())
        if not commands:
            return []
        pool = ThreadPoolExecutor(min(len(commands), _MOST_THREADS), "hopline-resume")
        try:
            return _all([pool.submit(self._again, command) for command in commands])
        except BaseException:
            for command in commands:
                self._engine.cancel(command)
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def settle(self, record: str, *, happened: bool, became: str | int | None = None) -> bool:
        """Closes a doubt by hand, once you know what happened. Whether there was one.

        :param became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to
            be waited for goes on with that, by its intent or record; anything else is what the intent answers with.
        """
        self._engine.take_up("settle", record)
        return self._now("settle", lambda core: core.settle(record, happened, None if became is None else str(became)))

    def forget(self, record: str) -> bool:
        """Forgets a session, an order that nobody waits for, an accepted intent or a record that was refused. Whether there was one and its
        record is gone. What is in doubt stays, as does what a living client has."""
        self._engine.take_up("forget", record)
        return self._now("forget", lambda core: core.forget(record)) and self._engine.records.is_gone(record)

    def events(self) -> Events:
        """Events from now on, until the client is closed. At most 1000 wait to be taken; `dropped` counts those that were lost."""
        return self._engine.stream(Events)

    def close(self) -> None:
        """Gives up what is under way and keeps its records. No session and no order ends by it."""
        self._engine.close()

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

    def _again(self, command: int) -> Resumed | HoplineError:
        return self._read(self._run("resume", _known(command), {}), False)

    def _resumed_intent(self, intent: str, options: str) -> Taken | None:
        return run(self._engine, self._send, "resume", lambda core: core.resume_intent(intent, options), intent)

    def _read(self, taken: Taken, keep: bool) -> Resumed | HoplineError:
        found = read_any(taken)
        return OpenSession._of(found, lambda: self._end(found, keep)) if isinstance(found, SessionReply) else found

    def _now(self, operation: str, ask: Callable[[Any], bool]) -> bool:
        done = self._engine.ask(operation, ask)
        run(self._engine, self._send, operation, None)
        return done


def _known(command: int) -> Begin:
    return lambda core: command


def _options(deadline: float | None, credentials: bool | None, ends: Sequence[str] | None) -> str:
    return dumps(in_core_words({"deadline": deadline, "credentials": credentials, "ends": ends}))


def _named(intent: str | None) -> str:
    return _one_of_both() if intent is None else intent


def _one_of_both() -> NoReturn:
    invalid("resume", "intent", "or a record must be given, and not both")


def _all(resumed: "list[Future[Resumed | HoplineError]]") -> list[Resumed | HoplineError]:
    """What came of each. Ctrl-C ends the wait, which that of a future does not on every system."""
    for one in resumed:
        ended = threading.Event()
        one.add_done_callback(lambda _, ended=ended: ended.set())  # type: ignore[misc]
        wait(ended, None)
    return [one.result() for one in resumed]


class Tasks(AsyncCaller):
    """A client for tasks."""

    __slots__ = ()

    async def saved(self) -> list[Saved]:
        """What the store holds: what this client has, and what no living client has. Nothing is sent."""
        return await self._disk.run(self._engine, "saved", self._engine.saved)

    async def rejected(self) -> list[Rejected]:
        """Records of the store that this client leaves alone, such as those of another account."""
        return await self._disk.run(self._engine, "rejected", self._engine.rejected)

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
        options = _options(deadline, credentials, ends)
        if record is None:
            taken = await self._resumed_intent(_named(intent), options)
            if taken is None:
                return None
        elif intent is not None:
            _one_of_both()
        else:
            await self._take_up("resume", record)
            taken = await self._run("resume", lambda core: core.resume(record, options), {})
        found = self._read(taken, keep)
        if isinstance(found, HoplineError):
            raise found
        return found

    async def resume_all(self) -> list[AsyncResumed | HoplineError]:
        """Goes on with everything in the store that can be resumed and that no living client has, including what processes that
        crashed have left. Nothing is raised: failures are in the list.

        The records that it takes up stay this client's until it is closed. Where several workers share a store, let one of them call
        this, and let the others resume their own intents.
        """
        await self._disk.run(self._engine, "resume_all", lambda: self._engine.take_up_all("resume_all"))
        commands = self._engine.call("resume_all", lambda core: core.resume_all())
        try:
            return list(await asyncio.gather(*(self._again(command) for command in commands)))
        except BaseException:
            for command in commands:
                self._engine.cancel(command)
            raise

    async def settle(self, record: str, *, happened: bool, became: str | int | None = None) -> bool:
        """Closes a doubt by hand, once you know what happened. Whether there was one.

        :param became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to
            be waited for goes on with that, by its intent or record; anything else is what the intent answers with.
        """
        await self._take_up("settle", record)
        return await self._now("settle", lambda core: core.settle(record, happened, None if became is None else str(became)))

    async def forget(self, record: str) -> bool:
        """Forgets a session, an order that nobody waits for, an accepted intent or a record that was refused. Whether there was one and its
        record is gone. What is in doubt stays, as does what a living client has."""
        await self._take_up("forget", record)
        done = await self._now("forget", lambda core: core.forget(record))
        return done and await self._disk.run(self._engine, "forget", lambda: self._engine.records.is_gone(record))

    def events(self) -> AsyncEvents:
        """Events from now on, until the client is closed. At most 1000 wait to be taken; `dropped` counts those that were lost."""
        return self._engine.stream(AsyncEvents)

    async def close(self) -> None:
        """Gives up what is under way and keeps its records. No session and no order ends by it."""
        self._engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _attach(self, send: AsyncTransport, engine: Engine, on_event: Callable[[Event], object] | None) -> None:
        self._send, self._engine, self._disk = send, engine, Disk()
        own(send, engine.closing)
        engine.closing.add(self._disk)
        if on_event is not None:
            engine.listeners.append(on_event)

    def _for_threads(self, kind: type[B], http: Any) -> B:
        other = kind.__new__(kind)
        other._attach(choose(http), self._engine, None)
        return other

    async def _again(self, command: int) -> AsyncResumed | HoplineError:
        return self._read(await self._run("resume", _known(command), {}), False)

    async def _resumed_intent(self, intent: str, options: str) -> Taken | None:
        return await run_async(self._engine, self._send, self._disk, "resume", lambda core: core.resume_intent(intent, options), intent)

    def _read(self, taken: Taken, keep: bool) -> AsyncResumed | HoplineError:
        found = read_any(taken)
        return AsyncOpenSession._of(found, lambda: self._end(found, keep)) if isinstance(found, SessionReply) else found

    async def _now(self, operation: str, ask: Callable[[Any], bool]) -> bool:
        done = self._engine.ask(operation, ask)
        await run_async(self._engine, self._send, self._disk, operation, None)
        return done
