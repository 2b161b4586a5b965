"""A static order as waiting for it ended."""

from __future__ import annotations

from typing import Any

from ._told import Phase
from ._types import StaticOrder
from ._value import Value


class OrderReply(Value):
    """How a static order is, when waiting for it ended: usable, over, or (`pending`, `unknown`) not yet, at the deadline.
    `wait_order` waits on."""

    order_no: str
    """Its number: the handle for everything that comes after."""
    phase: Phase
    """Where it is."""
    order: StaticOrder
    """What the list of static orders shows of it."""

    @property
    def raw(self) -> Any:
        """The same as JSON. It may hold secrets."""
        return self.order.raw
