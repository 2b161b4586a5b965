"""The position of a walk over a list. The core determines the next page, and whether there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from . import _hopline
from ._errors import ask, told
from ._told import End
from ._value import Reply
from ._values import dumps, loads

I = TypeVar("I")
P = TypeVar("P", bound=Reply)


class Walk(Generic[I, P]):
    """A walk over a list. `position` moves when a page, or the last item of one, was handed out, and not before."""

    __slots__ = ("_items", "_params", "_read", "end", "position")

    position: str | None
    """The position to continue from, as JSON: save it anywhere, and pass it to another walk. `None` at the end of the list."""
    end: End | None
    """The reason why the walk is over; `None` as long as it is not."""

    def __init__(
        self,
        operation: str,
        params: Mapping[str, Any],
        position: str | None,
        max_pages: int | None,
        read: Callable[[str], Any],
        items: Callable[[P], tuple[I, ...]],
    ) -> None:
        if position is not None and not isinstance(position, str):
            raise TypeError("`position` must be the text that a walk's `position` was")
        self._params = dumps(dict(params))
        self._read = read
        self._items = items
        self.position = ask("walk", operation=operation, position=position, max_pages=max_pages)["position"]
        self.end = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(position={self.position!r}, end={self.end!r})"

    def _next(self) -> str | None:
        """The parameters of the next page, if there is one."""
        if self.end is not None or self.position is None:
            return None
        return told(_hopline.page_params, self.position, self._params)

    def _turn(self, facts: str) -> dict[str, Any]:
        """The position after a page."""
        assert self.position is not None  # a page was read there
        turned: dict[str, Any] = loads(told(_hopline.page_turn, self.position, facts))
        return turned

    def _move(self, turn: dict[str, Any]) -> None:
        self.position = turn.get("position")
        self.end = turn.get("end")
