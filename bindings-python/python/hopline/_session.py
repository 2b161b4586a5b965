"""A session as waiting for it ended, and the `with` block that ends it."""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from ._errors import HoplineError
from ._types import Proxy, Session
from ._values import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReply:
    """How a session is, when waiting for it ended: usable, over, or (`pending`, `unknown`) not yet, at the deadline."""

    session_id: str
    """Its id: the handle for everything that comes after."""
    phase: Phase
    """Where it is."""
    session: Session
    """The last read of it."""
    raw: Any = field(default=None, repr=False, compare=False)
    """The whole `data` of that read. It may hold secrets."""

    @property
    def proxy(self) -> Proxy:
        """How to reach it; empty as long as it is not usable."""
        return self.session.proxy or Proxy()


class OpenSession(SessionReply):
    """A session that was opened. As a context manager it ends a dynamic one, unless it was opened with `keep=True`."""

    _end: Callable[[], object]

    @classmethod
    def _of(cls, reply: SessionReply, end: Callable[[], object]) -> Self:
        opened = cls(session_id=reply.session_id, phase=reply.phase, session=reply.session, raw=reply.raw)
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
        return _plain, (self.session_id, self.phase, self.session, self.raw)


def _plain(session_id: str, phase: Phase, session: Session, raw: Any) -> SessionReply:
    return SessionReply(session_id=session_id, phase=phase, session=session, raw=raw)


class AsyncOpening:
    """A session that is being opened: `await` it, or `async with` it, which ends a dynamic one unless `keep=True`."""

    __slots__ = ("_end", "_open", "_reply")

    def __init__(self, open: Callable[[], Awaitable[SessionReply]], end: Callable[[SessionReply], Awaitable[object]]) -> None:
        self._open = open
        self._end = end
        self._reply: SessionReply | None = None

    def __await__(self) -> Generator[Any, Any, SessionReply]:
        return self._open().__await__()

    async def __aenter__(self) -> SessionReply:
        self._reply = await self._open()
        return self._reply

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._reply is None:
            return
        try:
            await self._end(self._reply)
        except HoplineError as failure:
            if error is None:
                raise
            error.add_note(f"and the session could not be ended: {failure}")
