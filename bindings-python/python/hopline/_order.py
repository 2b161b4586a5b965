"""A static order at the end of its wait."""

from __future__ import annotations

from typing import Any

from ._told import Phase
from ._types import StaticOrder
from ._value import Value


class OrderReply(Value):
    """A static order at the end of its wait: usable, over, or (`pending`, `unknown`) not yet, at the deadline. `wait_order` waits on."""

    order_no: str
    """The order's number: the handle for all further operations."""
    phase: Phase
    """The phase of the order."""
    order: StaticOrder
    """The order, as the list of static orders shows it."""

    @property
    def raw(self) -> Any:
        """The order as JSON. The value may hold secrets."""
        return self.order.raw
