"""The common part of the clients of both APIs: operations, records, events, and closing. The client for threads is printed from this one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, overload

from ._answers import failure, read, read_any, read_order, read_page, read_session, stands_for_nothing, unready
from ._async_pages import AsyncPages
from ._async_pool import AsyncPool, AsyncPoolOpening
from ._async_session import AsyncOpening, AsyncOpenSession
from ._commands import begin, begin_as, listing, pool_params, resuming, resuming_all
from ._events import AsyncEvents
from ._http import AsyncTransport, own
from ._observing import Observing, Verdict
from ._order import OrderReply
from ._proxy import CHOSEN_PROTOCOL, UseWith, check_use_with, in_core
from ._seen import Seen, check_blocked
from ._session import SessionReply
from ._tasks import carrier, run, spanned, until_over
from ._told import Event, HoplineError, NotReady, Saved
from ._value import Reply
from ._walk import I

if TYPE_CHECKING:
    from ._engine import Engine
    from ._work import Begin, Taken

AsyncResumed: TypeAlias = AsyncOpenSession | OrderReply | Reply
"""A resumed session, order or answer."""
R = TypeVar("R", bound=Reply)


class AsyncClient:
    """The operations of a client, and its store's entries."""

    __slots__ = ("_engine", "_send")
    _engine: Engine
    _send: AsyncTransport

    def __init_subclass__(cls) -> None:
        # Python's own errors name a method by its class, which is to be the one that the caller knows.
        operations = cls.__mro__[1]
        if operations.__name__.endswith("Operations"):
            for name, method in vars(operations).items():
                if isinstance(method, FunctionType):
                    method.__qualname__ = f"{cls.__name__}.{name}"

    def __reduce__(self) -> Any:
        raise TypeError("a client can't be pickled or copied; make one in each process, with a store that they share")

    async def saved(self) -> list[Saved]:
        """Returns the entries of the store: purchases under way and in doubt, sessions, orders, and intents that were accepted. Nothing is
        sent.
        """
        return [one async for one in self.walk_saved()]

    async def walk_saved(self) -> AsyncIterator[Saved]:
        """Iterates over the entries of the store, which are read as they are needed, 500 at a time."""
        after = None
        while True:
            entries, after = read_page(await self._run("saved", listing(after)))
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
        """Resumes a record or an intent.

        Args:
            record: The record, as an error or `saved` names it.
            intent: Your own name for the operation, in place of a record. If it is not known, nothing is sent and the result is `None`.
            deadline: Seconds to wait in all for a session or an order. Default: 300.
            credentials: True to read a session's username and password.
            ends: Further statuses that end the wait.
            keep: True to keep a session when its `with` block is left. A static one is always kept.

        Raises the failure of the operation: `Ended` for a session that is over, and `Misuse` for an unknown record.
        """
        options = {"deadline": deadline, "credentials": credentials, "ends": ends}
        taken = await self._run("resume", resuming(record, intent, options))
        assert taken is not None  # a command that has ended was taken
        return None if intent is not None and stands_for_nothing(taken) else self._resumed(taken, keep)

    async def resume_all(
        self,
        *,
        deadline: float | None = None,
        credentials: bool | None = None,
        ends: Sequence[str] | None = None,
    ) -> list[AsyncResumed | HoplineError]:
        """Resumes everything that no living client owns, including operations of processes that crashed, 16 at a time. Failures of single
        ones are in the list.

        Every doubt that can be sent again is resumed. Sessions and orders that were begun without an intent are taken back and waited for;
        this client holds the sessions until they are over, or it releases them. Sessions and orders with an intent are left for the next
        start of the intent. Workers that share a store each take a part.

        Args:
            deadline: Seconds to wait in all for each session or order. Default: 300.
            credentials: True to read usernames and passwords of sessions.
            ends: Further statuses that end the wait.

        Raises `StoreError` if the store can't be read.
        """
        options = {"deadline": deadline, "credentials": credentials, "ends": ends}
        taken = await self._run("resume_all", resuming_all(options))
        read(taken, Reply)
        assert taken is not None  # the list was read
        return [self._resumed(part, False) if part.failure is None else failure(part) for part in taken.parts]

    async def settle(self, record: str, *, happened: bool, became: str | int | None = None, early: bool = False) -> bool:
        """Settles a doubt by hand, once you know its outcome. Returns true if there was one.

        Args:
            record: The record, as an error or `saved` names it.
            happened: True if the operation took effect. If not, the record is deleted and the intent is free.
            became: The result, if it is known: the id of a session or recharge, the number of an order or sub-user. An operation that waits
                for its result continues with it, by its intent or record; for other operations the intent then returns it as the answer.
            early: True to settle as not happened within an hour of the last send, too. The request may still be under way: then its
                purchase would be lost.

        Raises `Refused` if the record has changed since you read it, or if it is too early, and `Busy` if another client owns it.
        """
        what = None if became is None else str(became)
        taken = await self._run("settle", lambda core, owner: core.settle(record, happened, what, early, owner))
        return bool(read(taken, Reply).raw)

    async def forget(self, record: str) -> bool:
        """Forgets a session, an order that no call waits for, an accepted intent, or a record that can't be used. Returns true if there was
        one. A record in doubt stays, and so does a record of another account or base URL, unless the client was made with `same_account`.

        Raises `Refused` if the record has changed since you read it, or belongs to a session of this client that is not over
        (`terminate_session` ends it, `release_session` releases it), and `Busy` if another client owns it.
        """
        return bool(read(await self._run("forget", lambda core, owner: core.forget(record, owner)), Reply).raw)

    def events(self) -> AsyncEvents:
        """Returns the events from now on, until the client is closed. At most 1000 wait to be taken; `dropped` counts those that were lost.
        """
        return self._engine.stream(AsyncEvents)

    async def close(self, timeout: float = 10) -> None:
        """Cancels calls under way and keeps their records; only terminations that were begun go on. The store releases everything that this
        client has. No session and no order is ended. Waits for other calls and for the store, for at most `timeout` seconds; slower ones end
        by themselves, and a warning is logged.
        """
        engine = self._engine
        if engine.close():
            engine.finish()
        if not engine.is_forked():
            await until_over(engine, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _attach(self, send: AsyncTransport, engine: Engine, on_event: Callable[[Event], object] | None = None) -> None:
        self._send, self._engine = send, engine
        own(send, engine.closing)
        if on_event is not None:
            engine.listen(on_event)

    def _run(self, operation: str, start: Begin) -> Awaitable[Taken | None]:
        if (span := self._engine.span) is not None:
            return spanned(span(operation), lambda: run(self._engine, self._send, operation, start))
        return run(self._engine, self._send, operation, start)

    async def _call(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any], reply: type[R]) -> R:
        return read(await self._run(operation, begin(operation, params, options)), reply)

    def _walk(
        self,
        operation: str,
        params: Mapping[str, Any],
        options: Mapping[str, Any],
        position: str | None,
        max_pages: int | None,
        reply: type[R],
        items: Callable[[R], tuple[I, ...]],
    ) -> AsyncPages[I, R]:
        async def page(params: str) -> tuple[R, str]:
            taken = await self._run(operation, begin_as(operation, params, options))
            found = read(taken, reply)
            return found, taken.facts if taken is not None else ""

        return AsyncPages(operation, params, position, max_pages, page, items)

    def _open(self, params: Mapping[str, Any], options: Mapping[str, Any], keep: bool) -> AsyncOpening:
        return AsyncOpening(self._open_session(params, options, keep))

    async def _open_session(self, params: Mapping[str, Any], options: Mapping[str, Any], keep: bool) -> AsyncOpenSession:
        client = options.get("use_with")
        # Where no protocol is named, the core chooses one that needs no further package.
        check_use_with("open_session", params, client)
        options = options if client is None else {**options, "use_with": in_core(client)}
        taken = await self._run("open_session", begin("open_session", params, options))
        try:
            return self._opened(read_session(taken), keep)
        except NotReady as error:
            opened = self._opened(unready(error), keep)
            if not keep and options.get("intent") is None and options.get("idempotency_key") is None:
                # Nothing else leads to it, so it ends as it does where its block is left.
                await opened.__aexit__(NotReady, error, None)
            error.session = opened
            raise

    def _open_pool(
        self,
        params: Mapping[str, Any],
        use_with: UseWith | None = None,
        blocked: Callable[[Any], bool] | None = None,
        operation: str = "open_pool",
    ) -> AsyncPoolOpening:
        return AsyncPoolOpening(self._opened_pool(operation, pool_params(operation, params), use_with, blocked))

    async def _opened_pool(
        self, operation: str, params: Mapping[str, Any], use_with: UseWith | None, blocked: Callable[[Any], bool] | None
    ) -> AsyncPool:
        check_use_with(operation, params, use_with)
        params = params if use_with is None else {"protocol": CHOSEN_PROTOCOL, **params}
        check_blocked(blocked)
        number = read(await self._run(operation, begin(operation, params, {})), Reply).raw["pool"]
        self._engine.leases.opened(number, params["name"])
        self._engine.carry(carrier(self._send))
        return AsyncPool(self, params["name"], number, blocked)

    async def _wait(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> SessionReply:
        taken = await self._run("wait_session", begin("wait_session", params, options))
        try:
            return read_session(taken)
        except NotReady as error:
            error.session = self._opened(unready(error), True)
            raise

    async def _order(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> OrderReply:
        return read_order(await self._run(operation, begin(operation, params, options)))

    async def _release(self, session_id: str) -> bool:
        """This needs no waiting, but leaves work to do."""
        released: list[bool] = []
        await self._run("release_session", lambda core, owner: released.append(core.release_session(session_id)))
        return released[0]

    def _resumed(self, taken: Taken, keep: bool) -> AsyncResumed:
        try:
            found = read_any(taken)
        except NotReady as error:
            error.session = self._opened(unready(error), keep)
            raise
        return self._opened(found, keep) if isinstance(found, SessionReply) else found

    def _opened(self, found: SessionReply, keep: bool) -> AsyncOpenSession:
        return AsyncOpenSession._of(self, found, keep)

    async def _observe(self, session_id: str, seen: Seen) -> Verdict | None:
        observing = Observing(session_id, seen)
        return observing.verdict(await self._run("observe", observing.begin))
