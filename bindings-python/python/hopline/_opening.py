"""Coroutines that open something, for `await` or `async with`. Threads do not need this."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T", bound=AbstractAsyncContextManager[Any])


class Opening(Coroutine[Any, Any, T]):
    """A coroutine that opens something, and closes it again in `async with`."""

    __slots__ = ("_opened", "_opening")

    def __init__(self, opening: Coroutine[Any, Any, T]) -> None:
        self._opening = opening
        self._opened: T | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: await it, or use it in `async with`; nothing is done before>"

    def __await__(self) -> Generator[Any, Any, T]:
        return self._opening.__await__()

    def send(self, value: Any, /) -> Any:
        """Continues the coroutine, as an event loop does."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """Raises an exception in the coroutine, as an event loop does."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """Drops the coroutine. If it was not awaited yet, nothing is done."""
        self._opening.close()

    async def __aenter__(self) -> T:
        self._opened = await self._opening
        return self._opened

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._opened is not None:
            await self._opened.__aexit__(kind, error, at)
