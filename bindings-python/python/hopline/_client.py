"""What the clients of both APIs do: records, events, and their end. One class for threads, and one for tasks."""

import asyncio
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeAlias, TypeVar, cast

from ._answers import read_any
from ._bases import AsyncCaller, Caller, take_up
from ._engine import Engine
from ._errors import HoplineError
from ._facts import Event, Rejected, Saved
from ._http import choose, choose_async
from ._order import OrderReply
from ._run import Begin, Disk, run, run_async
from ._session import SessionReply
from ._values import Reply

Resumed: TypeAlias = SessionReply | OrderReply | Reply | HoplineError
"""What came of a record that was resumed: its session, its order, its answer, or why not."""
B = TypeVar("B", bound="Blocking")
T = TypeVar("T", bound="Tasks")
_MOST_THREADS = 64


class _Common:
    """What needs no waiting, and so is the same for threads and for tasks."""

    __slots__ = ()
    _engine: Engine

    def saved(self) -> list[Saved]:
        """What the store holds: what this client has, and what no living client has. Nothing is sent."""
        return self._engine.saved()

    def rejected(self) -> list[Rejected]:
        """Records of the store that this client leaves alone, such as those of another account."""
        return self._engine.rejected()

    def _adopt_all(self) -> Callable[[Any], list[int]]:
        def start(core: Any) -> list[int]:
            self._engine.adopt(lambda saved: True)
            return cast(list[int], core.resume_all())

        return start

    def _listen(self, on_event: Callable[[Event], object] | None) -> None:
        if on_event is not None:
            self._engine.listeners.append(on_event)


class Blocking(_Common, Caller):
    """A client for threads."""

    __slots__ = ()

    def resume(self, record: str) -> Resumed:
        """Goes on with what a record holds. Raises what it ended with, if that is no answer."""
        take_up(self._engine, "resume", record)
        found = self._resumed(lambda core: core.resume(record, "{}"))
        if isinstance(found, HoplineError):
            raise found
        return found

    def resume_all(self) -> list[Resumed]:
        """Goes on with all that can be resumed, also of clients that are no more. Nothing is raised: failures are in the list."""
        commands = self._engine.call("resume_all", self._adopt_all())
        if not commands:
            return []
        with ThreadPoolExecutor(min(len(commands), _MOST_THREADS), "hopline-resume") as pool:
            return list(pool.map(lambda command: self._resumed(lambda core: command), commands))

    def settle(self, record: str, *, happened: bool, became: str | int | None = None) -> bool:
        """Closes a doubt by hand, once you know what happened. Whether there was one.

        :param became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to
            be waited for goes on with that, by its intent or record; anything else is what the intent answers with.
        """
        take_up(self._engine, "settle", record)
        return self._now("settle", lambda core: core.settle(record, happened, None if became is None else str(became)))

    def forget(self, record: str) -> bool:
        """Forgets a session, an order that nobody waits for or an accepted intent, whose record goes. Whether there was one. What is
        in doubt stays."""
        take_up(self._engine, "forget", record)
        return self._now("forget", lambda core: core.forget(record))

    def events(self) -> Iterator[Event]:
        """Progress, from now on until the client is closed."""
        told: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._engine.listeners.append(told.put)
        self._engine.closers.append(lambda: told.put(None))
        return iter(told.get, None)

    def close(self) -> None:
        """Gives up what is under way and keeps its records. No session and no order ends by it."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _for_tasks(self, kind: type[T], http: Any) -> T:
        other = kind.__new__(kind)
        other._send, other._engine, other._disk = choose_async(http), self._engine, Disk()
        return other

    def _resumed(self, start: Begin) -> Resumed:
        taken = run(self._engine, self._send, "resume", start)
        assert taken is not None  # a command that has ended was taken
        return read_any(taken)

    def _now(self, operation: str, ask: Callable[[Any], bool]) -> bool:
        done = self._engine.ask(operation, ask)
        run(self._engine, self._send, operation, None)
        return done


class Tasks(_Common, AsyncCaller):
    """A client for tasks."""

    __slots__ = ()

    async def resume(self, record: str) -> Resumed:
        """Goes on with what a record holds. Raises what it ended with, if that is no answer."""
        take_up(self._engine, "resume", record)
        found = await self._resumed(lambda core: core.resume(record, "{}"))
        if isinstance(found, HoplineError):
            raise found
        return found

    async def resume_all(self) -> list[Resumed]:
        """Goes on with all that can be resumed, also of clients that are no more. Nothing is raised: failures are in the list."""
        commands = self._engine.call("resume_all", self._adopt_all())

        def known(command: int) -> Begin:
            return lambda core: command

        return list(await asyncio.gather(*(self._resumed(known(command)) for command in commands)))

    async def settle(self, record: str, *, happened: bool, became: str | int | None = None) -> bool:
        """Closes a doubt by hand, once you know what happened. Whether there was one.

        :param became: What it became, if that is known: the id of a session or recharge, the number of an order or sub-user. What was to
            be waited for goes on with that, by its intent or record; anything else is what the intent answers with.
        """
        take_up(self._engine, "settle", record)
        return await self._now("settle", lambda core: core.settle(record, happened, None if became is None else str(became)))

    async def forget(self, record: str) -> bool:
        """Forgets a session, an order that nobody waits for or an accepted intent, whose record goes. Whether there was one. What is
        in doubt stays."""
        take_up(self._engine, "forget", record)
        return await self._now("forget", lambda core: core.forget(record))

    def events(self) -> AsyncIterator[Event]:
        """Progress, from now on until the client is closed."""
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Event | None] = asyncio.Queue()

        def tell(event: Event | None) -> None:
            try:
                loop.call_soon_threadsafe(told.put_nowait, event)
            except RuntimeError:  # the loop is closed, and nobody listens
                return

        self._engine.listeners.append(tell)
        self._engine.closers.append(lambda: tell(None))

        async def each() -> AsyncIterator[Event]:
            while (event := await told.get()) is not None:
                yield event

        return each()

    async def close(self) -> None:
        """Gives up what is under way and keeps its records. No session and no order ends by it."""
        self._engine.close()
        self._disk.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _for_threads(self, kind: type[B], http: Any) -> B:
        other = kind.__new__(kind)
        other._send, other._engine = choose(http), self._engine
        return other

    async def _resumed(self, start: Begin) -> Resumed:
        taken = await run_async(self._engine, self._send, self._disk, "resume", start)
        assert taken is not None  # a command that has ended was taken
        return read_any(taken)

    async def _now(self, operation: str, ask: Callable[[Any], bool]) -> bool:
        done = self._engine.ask(operation, ask)
        await run_async(self._engine, self._send, self._disk, operation, None)
        return done
