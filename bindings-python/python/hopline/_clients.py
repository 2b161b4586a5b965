"""The clients of the Agent Proxy Session API."""

import asyncio
import json
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Self, TypeAlias, Unpack, cast

from ._agent_operations import AgentOperations, AsyncAgentOperations
from ._bases import read, read_any
from ._engine import Engine
from ._errors import HoplineError
from ._facts import Event, Rejected, Saved, Verdict
from ._http import choose, choose_async
from ._options import Options, new_engine
from ._run import Begin, Disk, run, run_async
from ._session import SessionReply
from ._store import Store
from ._types import Session
from ._values import Reply, Secret, loads
from ._work import Taken, now

Seen: TypeAlias = int | Literal["captcha", "timeout", "block"]
"""What a request through a session met: an HTTP status, a page that asks for a captcha, no answer, or another block."""
Resumed: TypeAlias = SessionReply | Reply | HoplineError
"""What came of a record that was resumed: its session, its answer, or why not."""
_MOST_THREADS = 64


class _Common:
    """What needs no waiting, and so is the same for both clients."""

    __slots__ = ()
    _engine: Engine

    def saved(self) -> list[Saved]:
        """What the store holds: what this client has, and what no living client has. Nothing is sent."""
        return self._engine.saved()

    def rejected(self) -> list[Rejected]:
        """Records of the store that this client leaves alone, such as those of another account."""
        return self._engine.rejected()

    def _observed(self, session_id: str, seen: Seen) -> dict[str, Any] | None:
        """What was seen comes to this. If it begins a rotation, or joins one, there is a `command` to wait for."""
        told = json.dumps({"status": seen} if isinstance(seen, int) else seen, default=str)

        def ask(core: Any) -> Any:
            try:
                return core.observe(session_id, told, *now())
            except ValueError as error:
                return HoplineError._parse(str(error))

        found = self._engine.call("observe", ask)
        if isinstance(found, HoplineError):
            raise found
        return None if found is None else loads(found)

    def _adopt(self, operation: str, record: str) -> None:
        self._engine.call(operation, lambda core: self._engine.adopt(lambda saved: saved.record == record))

    def _adopt_all(self) -> Callable[[Any], list[int]]:
        def start(core: Any) -> list[int]:
            self._engine.adopt(lambda saved: True)
            return cast(list[int], core.resume_all())

        return start


class AgentClient(_Common, AgentOperations):
    """The client of one account, for threads. Any number of them may use it at once.

    Leaving a `with` block of it closes it: what is under way is given up, records stay, no session is ended.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        http: Any = None,
        store: Store | None = None,
        same_account: bool = False,
        on_event: Callable[[Event], object] | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Makes a client.

        Args:
            api_key: The API key; without it, that of the environment's HOPLINE_API_KEY.
            base_url: The address of the API, such as `https://host/v1`; without it, HOPLINE_BASE_URL.
            http: A `requests.Session`, `httpx.Client`, `urllib3.PoolManager`, or any callable that takes a `Request` and
                returns a `Response`; without it, the standard library.
            store: Where records are kept; without it, in memory.
            same_account: Whether records of another key are of this account all the same.
            on_event: Is told of progress.
            options: How to repeat, wait and read; see `Options`.
        """
        api_key = None if api_key is None else Secret(api_key)
        self._send = choose(http)
        self._engine = new_engine(api_key, base_url, store, same_account, options)
        if on_event is not None:
            self._engine.listeners.append(on_event)

    def to_async(self, *, http: Any = None) -> "AsyncAgentClient":
        """The same client for tasks: one account, one store, one core. To close either is to close both."""
        other = AsyncAgentClient.__new__(AsyncAgentClient)
        other._send, other._engine, other._disk = choose_async(http), self._engine, Disk()
        return other

    def resume(self, record: str) -> Resumed:
        """Goes on with what a record holds. Raises what it ended with, if that is no answer."""
        self._adopt("resume", record)
        found = self._resumed(lambda core: core.resume(record))
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

    def settle(self, record: str, *, happened: bool) -> bool:
        """Closes a doubt by hand, once you know what happened. Whether there was one."""
        self._adopt("settle", record)
        return self._now("settle", lambda core: core.settle(record, happened))

    def forget(self, record: str) -> bool:
        """Forgets a session or an accepted intent, whose record goes. Whether there was one. What is in doubt stays."""
        self._adopt("forget", record)
        return self._now("forget", lambda core: core.forget(record))

    def observe(self, *, session_id: str, seen: Seen) -> Verdict | None:
        """Advice on what was seen through a session. `None` if this client does not follow the session.

        Nothing is sent, unless the session was opened with `auto_rotate`: then it is rotated where the advice would be to, and
        this waits for that and raises why it failed. Whoever observes the same session meanwhile waits for the same rotation.
        """
        advice = self._observed(session_id, seen)
        if advice is None:
            return None
        if (command := advice.pop("command", None)) is None:
            return Verdict(**advice)
        return _rotated(advice, run(self._engine, self._send, "rotate_session", lambda core: command))

    def events(self) -> Iterator[Event]:
        """Progress, from now on until the client is closed."""
        told: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._engine.listeners.append(told.put)
        self._engine.closers.append(lambda: told.put(None))
        return iter(told.get, None)

    def close(self) -> None:
        """Gives up what is under way, keeps its records, ends no session."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _resumed(self, start: Begin) -> Resumed:
        taken = run(self._engine, self._send, "resume", start)
        assert taken is not None  # a command that has ended was taken
        return read_any(taken)

    def _now(self, operation: str, ask: Callable[[Any], bool]) -> bool:
        done = self._engine.call(operation, ask)
        run(self._engine, self._send, operation, None)
        return done


class AsyncAgentClient(_Common, AsyncAgentOperations):
    """The client of one account, for tasks. Any number of them may use it at once, in any event loop.

    A task that is cancelled gives its command up: its request is aborted, its record kept. Leaving an `async with` block
    closes the client and ends no session.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        http: Any = None,
        store: Store | None = None,
        same_account: bool = False,
        on_event: Callable[[Event], object] | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Makes a client.

        Args:
            api_key: The API key; without it, that of the environment's HOPLINE_API_KEY.
            base_url: The address of the API, such as `https://host/v1`; without it, HOPLINE_BASE_URL.
            http: An `httpx.AsyncClient`, `aiohttp.ClientSession`, one that blocking clients take, or any callable that takes a
                `Request` and returns a `Response` or awaits it; without it, the standard library in threads.
            store: Where records are kept; without it, in memory.
            same_account: Whether records of another key are of this account all the same.
            on_event: Is told of progress.
            options: How to repeat, wait and read; see `Options`.
        """
        api_key = None if api_key is None else Secret(api_key)
        self._send = choose_async(http)
        self._disk = Disk()
        self._engine = new_engine(api_key, base_url, store, same_account, options)
        if on_event is not None:
            self._engine.listeners.append(on_event)

    def to_sync(self, *, http: Any = None) -> AgentClient:
        """The same client for threads: one account, one store, one core. To close either is to close both."""
        other = AgentClient.__new__(AgentClient)
        other._send, other._engine = choose(http), self._engine
        return other

    async def resume(self, record: str) -> Resumed:
        """Goes on with what a record holds. Raises what it ended with, if that is no answer."""
        self._adopt("resume", record)
        found = await self._resumed(lambda core: core.resume(record))
        if isinstance(found, HoplineError):
            raise found
        return found

    async def resume_all(self) -> list[Resumed]:
        """Goes on with all that can be resumed, also of clients that are no more. Nothing is raised: failures are in the list."""
        commands = self._engine.call("resume_all", self._adopt_all())

        def known(command: int) -> Begin:
            return lambda core: command

        return list(await asyncio.gather(*(self._resumed(known(command)) for command in commands)))

    async def settle(self, record: str, *, happened: bool) -> bool:
        """Closes a doubt by hand, once you know what happened. Whether there was one."""
        self._adopt("settle", record)
        return await self._now("settle", lambda core: core.settle(record, happened))

    async def forget(self, record: str) -> bool:
        """Forgets a session or an accepted intent, whose record goes. Whether there was one. What is in doubt stays."""
        self._adopt("forget", record)
        return await self._now("forget", lambda core: core.forget(record))

    async def observe(self, *, session_id: str, seen: Seen) -> Verdict | None:
        """Advice on what was seen through a session. `None` if this client does not follow the session.

        Nothing is sent, unless the session was opened with `auto_rotate`: then it is rotated where the advice would be to, and
        this waits for that and raises why it failed. Whoever observes the same session meanwhile waits for the same rotation.
        """
        advice = self._observed(session_id, seen)
        if advice is None:
            return None
        if (command := advice.pop("command", None)) is None:
            return Verdict(**advice)
        return _rotated(advice, await run_async(self._engine, self._send, self._disk, "rotate_session", lambda core: command))

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
        """Gives up what is under way, keeps its records, ends no session."""
        self._engine.close()
        self._disk.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _resumed(self, start: Begin) -> Resumed:
        taken = await run_async(self._engine, self._send, self._disk, "resume", start)
        assert taken is not None  # a command that has ended was taken
        return read_any(taken)

    async def _now(self, operation: str, ask: Callable[[Any], bool]) -> bool:
        done = self._engine.call(operation, ask)
        await run_async(self._engine, self._send, self._disk, operation, None)
        return done


def _rotated(advice: dict[str, Any], taken: Taken | None) -> Verdict:
    assert taken is not None  # a command that has ended was taken
    session = read("rotate_session", taken, Session)
    if isinstance(session, HoplineError):
        raise session
    return Verdict(verdict="rotated", reason=advice["reason"], session=session)
