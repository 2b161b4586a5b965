"""A session as waiting for it ended, and the `with` block that ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Self

from ._errors import HoplineError
from ._types import Proxy, Session
from ._value import Value, field
from ._values import Phase


class SessionReply(Value):
    """How a session is, when waiting for it ended: usable, over, or (`pending`, `unknown`) not yet, at the deadline."""

    session_id: str
    """Its id: the handle for everything that comes after."""
    phase: Phase
    """Where it is."""
    session: Session
    """The last read of it."""

    @property
    def raw(self) -> Any:
        """The whole `data` of that read. It may hold secrets."""
        return self.session.raw

    @property
    def proxy(self) -> Proxy:
        """How to reach it; empty as long as it is not usable."""
        return self.session.proxy or Proxy()


class OpenSession(SessionReply):
    """A session that was opened. As a context manager it ends a dynamic one, unless it was opened with `keep=True`."""

    _end: Callable[[], object] = field(init=False)

    @classmethod
    def _of(cls, reply: SessionReply, end: Callable[[], object]) -> Self:
        opened = cls(session_id=reply.session_id, phase=reply.phase, session=reply.session)
        object.__setattr__(opened, "_end", end)
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._end()
        except HoplineError as failure:
            if error is None:
                raise
            error.add_note(f"and the session could not be ended: {failure}")

    def __reduce__(self) -> tuple[Any, ...]:
        # What ends it belongs to its client, and stays there.
        return _plain, (self.session_id, self.phase, self.session)


def _plain(session_id: str, phase: Phase, session: Session) -> SessionReply:
    return SessionReply(session_id=session_id, phase=phase, session=session)


class AsyncOpenSession(SessionReply):
    """A session that a task opened. As an async context manager it ends a dynamic one, unless it was opened with `keep=True`."""

    _end: Callable[[], Awaitable[object]] = field(init=False)

    @classmethod
    def _of(cls, reply: SessionReply, end: Callable[[], Awaitable[object]]) -> Self:
        opened = cls(session_id=reply.session_id, phase=reply.phase, session=reply.session)
        object.__setattr__(opened, "_end", end)
        return opened

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            await self._end()
        except HoplineError as failure:
            if error is None:
                raise
            error.add_note(f"and the session could not be ended: {failure}")

    def __reduce__(self) -> tuple[Any, ...]:
        # What ends it belongs to its client, and stays there.
        return _plain, (self.session_id, self.phase, self.session)


class AsyncOpening(Coroutine[Any, Any, AsyncOpenSession]):
    """A coroutine that opens a session: `await` it, make a task of it, or `async with` it, which ends a dynamic session unless it was
    opened with `keep=True`. It buys when it is awaited, and can be awaited once."""

    __slots__ = ("_opened", "_opening")

    def __init__(self, opening: Coroutine[Any, Any, AsyncOpenSession]) -> None:
        self._opening = opening
        self._opened: AsyncOpenSession | None = None

    def __await__(self) -> Generator[Any, Any, AsyncOpenSession]:
        return self._opening.__await__()

    def send(self, value: Any, /) -> Any:
        """Goes on with the coroutine, as an event loop does."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """Raises an exception in the coroutine, as an event loop does."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """Drops the coroutine. If it was not awaited yet, nothing is bought."""
        self._opening.close()

    async def __aenter__(self) -> AsyncOpenSession:
        self._opened = await self._opening
        return self._opened

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(kind, error, at)
