"""What the clients are made of, below their operations."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from . import _hopline
from ._answers import read, read_order, read_session
from ._engine import Begin, Engine
from ._errors import HoplineError, is_text, refuse
from ._http._base import AsyncTransport, Transport
from ._order import OrderReply
from ._pages import AsyncPages, Pages
from ._run import run
from ._proxy import UseWith, check_use_with
from ._session import AsyncOpening, AsyncOpenSession, OpenSession, SessionReply
from ._types import Reconciliation
from ._value import Reply
from ._values import dumps, loads
from ._work import Taken

if TYPE_CHECKING:
    from ._tasks import Disk

I = TypeVar("I")
R = TypeVar("R", bound=Reply)
T = TypeVar("T")
_SECONDS = ("window", "timeout", "deadline", "backoff", "throttled_backoff", "max_backoff", "conflict")


def begin(operation: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> Begin:
    """What starts an operation."""
    return begin_as(operation, dumps(dict(params)) if params else "{}", options)


def begin_as(operation: str, params: str, options: Mapping[str, Any]) -> Begin:
    """The same, with parameters that are JSON already."""
    told = in_core_words(options)
    chosen = dumps(told) if told else "{}"

    def start(core: _hopline.Client) -> int:
        try:
            return core.start(operation, params, chosen)
        except UnicodeEncodeError:
            known = {**loads(params), **options}
            refuse(operation, "not_text", field=next(name for name, value in known.items() if not is_text(value)))

    return start


def in_core_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the core has them: none that is left out, and milliseconds for seconds."""
    told: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name not in _SECONDS:
            told[name] = value
        elif isinstance(value, (int, float)) and abs(value) < 1e12:
            told[f"{name}_ms"] = round(value * 1000)
        else:
            raise TypeError(f"`{name}` must be a number of seconds")
    return told


class Caller:
    """What a blocking client does with an operation."""

    __slots__ = ("_engine", "_send")
    _engine: Engine
    _send: Transport

    def _call(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any], reply: type[R]) -> R:
        found = read(self._run(operation, begin(operation, params, options)), reply)
        if isinstance(found, HoplineError):
            raise found
        return found

    def _walk(
        self,
        operation: str,
        params: Mapping[str, Any],
        options: Mapping[str, Any],
        position: str | None,
        max_pages: int | None,
        reply: type[R],
        items: Callable[[R], tuple[I, ...]],
    ) -> Pages[I, R]:
        def page(params: str) -> tuple[R, str]:
            taken = self._run(operation, begin_as(operation, params, options))
            found = read(taken, reply)
            if isinstance(found, HoplineError):
                raise found
            return found, taken.facts

        return Pages(operation, params, position, max_pages, page, items)

    def _open(self, params: Mapping[str, Any], options: Mapping[str, Any], keep: bool, use_with: UseWith | None) -> OpenSession:
        check_use_with(params, use_with)
        found = read_session(self._run("open_session", begin("open_session", params, options)))
        if isinstance(found, HoplineError):
            raise found
        return OpenSession._of(found, lambda: self._end(found, keep))

    def _wait(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> SessionReply:
        found = read_session(self._run("wait_session", begin("wait_session", params, options)))
        if isinstance(found, HoplineError):
            raise found
        return found

    def _order(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> OrderReply:
        found = read_order(self._run(operation, begin(operation, params, options)))
        if isinstance(found, HoplineError):
            raise found
        return found

    def _reconcile(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> Reconciliation:
        return self._call("reconcile", params, options, Reconciliation)

    def _run(self, operation: str, start: Begin) -> Taken:
        taken = run(self._engine, self._send, operation, start)
        assert taken is not None  # a command that has ended was taken
        return taken

    def _now(self, operation: str, act: Callable[[_hopline.Client], T]) -> T:
        """What needs no waiting, and what it leaves to do."""
        done: list[T] = []
        run(self._engine, self._send, operation, lambda core: done.append(act(core)))
        return done[0]

    def _end(self, opened: SessionReply, keep: bool) -> None:
        if is_kept(opened, keep):
            self._now("release_session", lambda core: core.release_session(opened.session_id))
        elif self._engine.follows(opened.session_id):
            self._call("terminate_session", {"session_id": opened.session_id}, {}, Reply)


class AsyncCaller:
    """What an async client does with an operation."""

    __slots__ = ("_disk", "_engine", "_send")
    _engine: Engine
    _send: AsyncTransport
    _disk: Disk

    async def _call(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any], reply: type[R]) -> R:
        found = read(await self._run(operation, begin(operation, params, options)), reply)
        if isinstance(found, HoplineError):
            raise found
        return found

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
            if isinstance(found, HoplineError):
                raise found
            return found, taken.facts

        return AsyncPages(operation, params, position, max_pages, page, items)

    def _open(self, params: Mapping[str, Any], options: Mapping[str, Any], keep: bool, use_with: UseWith | None) -> AsyncOpening:
        async def open_session() -> AsyncOpenSession:
            check_use_with(params, use_with)
            found = read_session(await self._run("open_session", begin("open_session", params, options)))
            if isinstance(found, HoplineError):
                raise found
            return AsyncOpenSession._of(found, lambda: self._end(found, keep))

        return AsyncOpening(open_session())

    async def _wait(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> SessionReply:
        found = read_session(await self._run("wait_session", begin("wait_session", params, options)))
        if isinstance(found, HoplineError):
            raise found
        return found

    async def _order(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> OrderReply:
        found = read_order(await self._run(operation, begin(operation, params, options)))
        if isinstance(found, HoplineError):
            raise found
        return found

    async def _reconcile(self, params: Mapping[str, Any], options: Mapping[str, Any]) -> Reconciliation:
        return await self._call("reconcile", params, options, Reconciliation)

    async def _run(self, operation: str, start: Begin) -> Taken:
        taken = await self._driven(operation, start)
        assert taken is not None  # a command that has ended was taken
        return taken

    async def _now(self, operation: str, act: Callable[[_hopline.Client], T]) -> T:
        """What needs no waiting, and what it leaves to do."""
        done: list[T] = []
        await self._driven(operation, lambda core: done.append(act(core)))
        return done[0]

    def _driven(self, operation: str, start: Begin) -> Coroutine[Any, Any, Taken | None]:
        return self._disk.run(self._engine, self._send, operation, start)

    async def _end(self, opened: SessionReply, keep: bool) -> None:
        if is_kept(opened, keep):
            await self._now("release_session", lambda core: core.release_session(opened.session_id))
        elif self._engine.follows(opened.session_id):
            await self._call("terminate_session", {"session_id": opened.session_id}, {}, Reply)


def is_kept(opened: SessionReply, keep: bool) -> bool:
    """Whether a session lives on when its `with` block is left."""
    return keep or opened.session.session_type == "static"
