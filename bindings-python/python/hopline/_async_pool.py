"""Pools for tasks, and their leases. Those for threads are printed from these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from ._answers import read
from ._commands import begin, pool_params
from ._errors import misuse
from ._log import log
from ._opening import Opening
from ._origins import LeaseOrigin
from ._proxy import of
from ._seen import Seen, is_block, seen_text, shown, wait_ms
from ._tasks import here
from ._told import LeaseAdvice, PoolStatus, read_pool_status
from ._types import Proxy
from ._value import Reply

if TYPE_CHECKING:
    from ._engine import Engine
    from ._work import Begin, Taken


class _Runner(Protocol):
    """The part of a client that a pool uses."""

    _engine: Engine

    def _run(self, operation: str, start: Begin) -> Awaitable[Taken | None]:
        """Runs a command."""
        ...


class AsyncLease:
    """A session that was lent to a task. Its exit does not change during the lease. As a context manager it gives the lease back, in any
    case. The pool knows of a failed request only what `observe` is given, so observe an exception before the block raises it.
    """

    __slots__ = ("__weakref__", "_blocked", "_command", "_data", "_engine", "generation", "proxy", "retry_at", "session_id", "slot", "target")

    session_id: str
    """The session."""
    proxy: Proxy
    """The proxy of the session."""
    generation: int
    """The generation, which grows whenever the session gets another exit or other credentials."""
    slot: int
    """The slot of the session in the pool."""
    target: str | None
    """The target of the lease."""
    retry_at: datetime | None
    """The time at which the target is worth another request, as of the last `observe`; UTC. It stays when the lease is given back."""

    def __init__(self, engine: Engine, command: int, told: Mapping[str, Any], target: str | None, blocked: Callable[[Any], bool] | None) -> None:
        self._data = engine.leases.data(command, told)
        self.session_id, self.generation, self.slot, self.target = told["session_id"], told["generation"], told["slot"], target
        proxy = Proxy(**{name: value for name, value in told["proxy"].items() if name in Proxy._fields})
        self.proxy = of(LeaseOrigin(self), proxy)
        self._engine, self._command, self._blocked, self.retry_at = engine, command, blocked, None
        engine.leases.look_after(self, command)
        engine.leases.use(command, here())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session_id={self.session_id!r}, generation={self.generation}, slot={self.slot}, target={shown(self.target)!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a lease can't be pickled or copied; hand on its `proxy`")

    @property
    def data(self) -> dict[str, Any]:
        """A place of your own, such as for cookies and for one HTTP client of this exit: put members into it. The next lease of the session
        finds them, until the exit changes. Members that are JSON, up to 4 KB together, are kept by the store when the lease is given back,
        so the next lease finds them in another process too, as whoever had the session last left them; the others stay in this client.
        """
        return self._data

    @property
    def valid(self) -> bool:
        """True as long as this client has the session. If false, send no more requests through it."""
        return self._engine.leases.is_valid(self._command)

    def observe(self, seen: Seen) -> LeaseAdvice:
        """Reports an observation from a request, and returns advice: `keep` the lease, `give_back` and acquire again, or give it back and
        `wait` until `retry_at`. Nothing is sent, and no request is repeated.

        Args:
            seen: An HTTP status, a word such as `captcha`, or the response or exception of an HTTP client. The pool's `blocked` is asked
                of a response first.
        """
        self._engine.leases.use(self._command, here())
        what: Seen = "block" if is_block(self._blocked, seen) else seen
        advised = self._engine.leases.observe(self._command, seen_text(what), wait_ms(seen))
        if advised is None:
            return "give_back"
        advice, self.retry_at = advised
        return advice

    def discard(self) -> None:
        """Never lends the session again. Once the lease was given back, a dynamic session is terminated and loses its prepaid traffic, and
        a session in its place is bought when one is needed, unless the pool's `replace` is `never`. A static one is terminated only if
        `replace` is not `never`. Give the lease back all the same.
        """
        self._engine.leases.discard(self._command)

    def release(self) -> None:
        """Gives the lease back. A second call does nothing."""
        self._engine.leases.give_back(self._command)

    async def __aenter__(self) -> Self:
        if not self._engine.leases.is_out(self._command):
            misuse("lease", "the lease was given back; acquire another one")
        self._engine.leases.use(self._command, here())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


class AsyncAcquiring(Opening[AsyncLease]):
    """A coroutine that acquires a lease: `await` it, or `async with` it, which gives the lease back. The coroutine can be awaited once."""


class AsyncPool:
    """A pool that a task opened. As an async context manager it is closed; its sessions stay for its next opening."""

    __slots__ = ("_blocked", "_client", "_number", "name")

    name: str
    """The name of the pool."""

    def __init__(self, client: _Runner, name: str, number: int, blocked: Callable[[Any], bool] | None) -> None:
        self._client, self.name, self._number, self._blocked = client, name, number, blocked

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a pool can't be pickled or copied; each process opens it by its name")

    def acquire(self, *, target: str | None = None, key: str | None = None, avoid: str | None = None, timeout: float = 30) -> AsyncAcquiring:
        """Waits for a free session. Give it back, best in a `with` block.

        Args:
            target: The target of the requests, such as a host: blocks that are observed for it count for this target alone.
            key: A key for a sticky session: the same key gets the same session, as long as this client has it and its exit has not changed.
            avoid: The id of a session that is not wanted, such as that of the attempt before: another one is lent, and bought if there is
                none. In a pool of one session this waits in vain.
            timeout: How long to wait. In seconds.

        Raises `Unavailable` if no session was free in time, at once if none can be, with the counts, `reason` and, if known, `retry_at`.
        """
        return AsyncAcquiring(self._acquire(target, key, avoid, timeout))

    async def _acquire(self, target: str | None, key: str | None, avoid: str | None, timeout: float) -> AsyncLease:
        from ._leases import Asking

        engine = self._client._engine
        params = pool_params("acquire", {"pool": self._number, "target": target, "key": key, "avoid": avoid, "timeout_ms": timeout})
        asking, begun = Asking(engine.leases, params), monotonic()
        try:
            taken = await self._client._run("acquire", asking.begin)
            if (watch := engine.leases.watch) is not None and taken is not None:
                watch.acquired(self.name, monotonic() - begun, taken.failure is None)
            told = read(taken, Reply).raw
            return AsyncLease(engine, asking.command, told, target, self._blocked)
        except BaseException:
            asking.undo()
            raise

    async def status(self, *, everywhere: bool = False) -> PoolStatus:
        """Returns the status of the pool.

        Args:
            everywhere: True to read the slots of other clients from the store first; otherwise they count as this client saw them last, or as
                `unknown`.
        """
        return await self._ask("pool_status", everywhere=everywhere)

    async def wait_ready(self, count: int = 1, timeout: float = 300) -> PoolStatus:
        """Waits until that many sessions are free, at most the pool's `keep_ready`.

        Raises `Unavailable` if they were not in time.
        """
        return await self._ask("wait_ready", count=count, timeout_ms=timeout)

    async def pause(self) -> None:
        """Stops buying until `resume`, in all clients of the store, also in those that open the pool later. Existing sessions are lent."""
        await self._ask("pause_pool")

    async def resume(self) -> None:
        """Buys again, in all clients of the store, even if the pool was drained or had stopped until a person or program acts."""
        await self._ask("resume_pool")

    async def close(self, grace: float = 10) -> None:
        """Stops lending, ends waiting callers with `Cancelled`, waits for leases, and releases all slots. Its sessions stay. Leases that the
        caller of this has itself are given back.

        Args:
            grace: How long to wait for leases of others. In seconds.
        """
        engine = self._client._engine
        if engine.is_closed():  # the client has closed the pool
            return
        if grace > 0 and (out := engine.leases.count(self._number, without=here())):
            log("warning", "the pool %s is closed, and %d leases of it are out: they are waited for, for %s seconds at most", self.name, out, grace)
        await self._end("close_pool", grace_ms=grace)

    async def drain(self, grace: float = 10, *, everywhere: bool = False, include_static: bool = False) -> None:
        """Closes the pool, and terminates the dynamic sessions of this client. Their prepaid traffic is lost. The pool stays paused until
        `resume`, in all clients of the store.

        Args:
            grace: How long it may take, at least 5 seconds. The last 5 of it, or half of less than 10, are for terminating sessions; until
                then leases are waited for. In seconds.
            everywhere: True if every client of the store does the same, and sessions that none of them has are terminated, too.
            include_static: True if static sessions are terminated, too. They are not refunded.

        Raises `Unavailable`, which names the sessions, if some still live at the end of `grace`, and `Misuse` if the pool is closed.
        """
        await self._end("drain_pool", grace_ms=grace, everywhere=everywhere, include_static=include_static)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # A program that fails waits for no lease.
        await self.close(10 if error is None else 0)

    async def _ask(self, operation: str, **params: Any) -> PoolStatus:
        return read_pool_status(read(await self._client._run(operation, self._begin(operation, params)), Reply).raw)

    async def _end(self, operation: str, **params: Any) -> None:
        leases = self._client._engine.leases
        read(await self._client._run(operation, leases.closing(self._number, self._begin(operation, params), here())), Reply)
        leases.closed(self._number)

    def _begin(self, operation: str, params: Mapping[str, Any]) -> Begin:
        return begin(operation, pool_params(operation, {"pool": self._number, **params}), {})


class AsyncPoolOpening(Opening[AsyncPool]):
    """A coroutine that opens a pool: `await` it, or `async with` it, which closes the pool. The coroutine can be awaited once."""
