"""The opening of a session, to be awaited or used in `async with`. A thread needs no such thing."""

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any

from ._async_session import AsyncOpenSession


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
