"""A session that was opened, and the `async with` block that ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from ._session import SessionReply, plain
from ._told import HoplineError
from ._value import field


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
        return plain, (self.session_id, self.phase, self.session)
