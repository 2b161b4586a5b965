"""Pools for tasks: what lends sessions, and what is lent. Those for threads are printed from these."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ._answers import read
from ._commands import begin, pool_params
from ._log import log
from ._seen import Seen, seen_text, wait_ms
from ._told import LeaseAdvice, PoolStatus, read_pool_status
from ._types import Proxy
from ._value import Reply

if TYPE_CHECKING:
    from ._async_client import AsyncClient
    from ._engine import Engine
    from ._pool_opening import AsyncAcquiring


class AsyncLease:
    """A session that was lent to a task. Its exit does not change under it. As a context manager it gives it back."""

    __slots__ = ("__weakref__", "_command", "_engine", "data", "generation", "proxy", "session_id", "slot", "target")

    session_id: str
    """The session."""
    proxy: Proxy
    """How to reach it."""
    generation: int
    """Grows whenever the session gets another exit or other credentials."""
    slot: int
    """The slot of the pool that the session is of."""
    target: str | None
    """What it was acquired for."""
    data: dict[str, Any]
    """A place of your own, for cookies and the like. Whoever gets the session next finds it, until its exit changes."""

    def __init__(self, engine: Engine, command: int, told: Mapping[str, Any], target: str | None, data: dict[str, Any]) -> None:
        self.session_id, self.generation, self.slot, self.target, self.data = told["session_id"], told["generation"], told["slot"], target, data
        self.proxy = Proxy(**{name: value for name, value in told["proxy"].items() if name in Proxy._fields})
        self._engine, self._command = engine, command
        engine.leases.look_after(self, command)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session_id={self.session_id!r}, generation={self.generation}, slot={self.slot}, target={self.target!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a lease can't be pickled or copied; hand on its `proxy`")

    @property
    def valid(self) -> bool:
        """Whether the session is this client's still. If not, make no request through it any more."""
        return self._engine.leases.is_valid(self._command)

    def observe(self, seen: Seen) -> LeaseAdvice:
        """Says what a request through it met, and gives advice: `keep` it, `give_back` and acquire again, or give it back and `wait`. Sends
        nothing by itself.

        Args:
            seen: An HTTP status, a word such as `captcha`, or the response or exception of an HTTP client.
        """
        return self._engine.leases.observe(self._command, seen_text(seen), wait_ms(seen))

    def release(self) -> None:
        """Gives it back. A second time does nothing."""
        self._engine.leases.give_back(self._command)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class AsyncPool:
    """A pool that a task opened. As an async context manager it is closed; its sessions live on for whoever opens it next."""

    __slots__ = ("_client", "_number", "name")

    name: str
    """Its name."""

    def __init__(self, client: AsyncClient, name: str, number: int) -> None:
        self._client, self.name, self._number = client, name, number

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a pool can't be pickled or copied; each process opens it by its name")

    def acquire(self, *, target: str | None = None, key: str | None = None, timeout: float = 30) -> AsyncAcquiring:
        """Waits for a session that is free. Give it back, best in a `with` block.

        Args:
            target: What is to be reached, such as a host: what is seen there counts for it alone.
            key: The same key gets the same session, as long as this client has it and its exit has not changed.
            timeout: How long to wait. In seconds.

        Raises `Unavailable` if no session was free in time, or none will be, with the reason and `retry_at`.
        """
        from ._pool_opening import AsyncAcquiring

        return AsyncAcquiring(self._acquire(target, key, timeout))

    async def _acquire(self, target: str | None, key: str | None, timeout: float) -> AsyncLease:
        from ._leases import Asking

        engine = self._client._engine
        params = pool_params("acquire", {"pool": self._number, "target": target, "key": key, "timeout_ms": timeout})
        asking, begun = Asking(engine.leases, params), monotonic()
        try:
            taken = await self._client._run("acquire", asking.begin)
            if (watch := engine.leases.watch) is not None and taken is not None:
                watch.acquired(self.name, monotonic() - begun, taken.failure is None)
            told = read(taken, Reply).raw
            return AsyncLease(engine, asking.command, told, target, engine.leases.data(told))
        except BaseException:
            asking.undo()
            raise

    async def status(self, *, everywhere: bool = False) -> PoolStatus:
        """How the pool is.

        Args:
            everywhere: Whether to ask the store what other clients have; if not, that is counted as `elsewhere`.
        """
        return await self._ask("pool_status", everywhere=everywhere)

    async def wait_ready(self, count: int = 1, timeout: float = 300) -> PoolStatus:
        """Waits until so many sessions are ready, at most the pool's `ready`.

        Raises `Unavailable` if they were not in time.
        """
        return await self._ask("wait_ready", count=count, timeout_ms=timeout)

    async def pause(self) -> None:
        """Buys no more until `resume`, in all clients of the store."""
        await self._ask("pause_pool")

    async def resume(self) -> None:
        """Buys again, in all clients of the store, also where it had stopped for a reason that somebody had to see to."""
        await self._ask("resume_pool")

    async def close(self, grace: float = 10) -> None:
        """Lends no more, ends those who wait with `Cancelled`, waits for leases, and releases all slots. Its sessions live on.

        Args:
            grace: How long leases are waited for. In seconds.
        """
        engine = self._client._engine
        if engine.is_closed():  # which has closed it
            return
        if grace > 0 and (out := engine.leases.count(self._number)):
            log("warning", "the pool %s is closed, and %d leases of it are out: they are waited for, for %s seconds at most", self.name, out, grace)
        await self._end("close_pool", grace_ms=grace)

    async def drain(self, grace: float = 10, *, everywhere: bool = False, include_static: bool = False) -> None:
        """Closes the pool, and terminates its dynamic sessions.

        Args:
            grace: How long leases are waited for. In seconds.
            everywhere: Whether every client of the store does, and sessions that none of them has are terminated, too.
            include_static: Whether static sessions are terminated, too. They are not refunded.
        """
        await self._end("drain_pool", grace_ms=grace, everywhere=everywhere, include_static=include_static)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # A program that fails waits for no lease.
        await self.close(10 if error is None else 0)

    async def _ask(self, operation: str, **params: Any) -> PoolStatus:
        return read_pool_status(read(await self._tell(operation, params), Reply).raw)

    async def _end(self, operation: str, **params: Any) -> None:
        read(await self._tell(operation, params), Reply)
        self._client._engine.leases.closed(self._number)

    async def _tell(self, operation: str, params: Mapping[str, Any]) -> Any:
        told = pool_params(operation, {"pool": self._number, **params})
        return await self._client._run(operation, begin(operation, told, {}))
