"""Walking a list page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ._walk import I, P, Walk


class AsyncPages(Walk[I, P]):
    """The items of a list, over all of its pages. Pages are fetched lazily.

    A read that fails raises and moves nothing: iterate again to try that page again.
    """

    __slots__ = ()

    async def __aiter__(self) -> AsyncIterator[I]:
        async for page, turn in self._each():
            items = self._items(page)
            for item in items[:-1]:
                yield item
            self._move(turn)
            for item in items[-1:]:
                yield item

    async def pages(self) -> AsyncIterator[P]:
        """The walk, a page at a time."""
        async for page, turn in self._each():
            self._move(turn)
            yield page

    async def _each(self) -> AsyncIterator[tuple[P, dict[str, Any]]]:
        while (params := self._next()) is not None:
            page, facts = await self._read(params)
            turn = self._turn(facts)
            if turn.get("end") == "repeated_page":
                # Repeated items are not given again.
                self._move(turn)
            else:
                yield page, turn
