"""A static order as waiting for it ended."""

from dataclasses import dataclass, field
from typing import Any

from ._types import StaticOrder
from ._values import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReply:
    """How a static order is, when waiting for it ended: usable, over, or (`pending`, `unknown`) not yet, at the deadline.
    `wait_order` waits on."""

    order_no: str
    """Its number: the handle for everything that comes after."""
    phase: Phase
    """Where it is."""
    order: StaticOrder
    """What the list of static orders shows of it."""
    raw: Any = field(default=None, repr=False, compare=False)
    """The same as JSON. It may hold secrets."""
