"""The cost of a purchase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _hopline
from ._errors import told
from ._told import Quote, read_quote
from ._types import Product
from ._values import dumps, loads

if TYPE_CHECKING:
    from decimal import Decimal


def quote(product: Product, quantity: Decimal | float = 1) -> Quote:
    """Prices a quantity of a product, exactly: nothing is sent and nothing is rounded.

    Args:
        product: A product of a list.
        quantity: GB (dynamic, fractions allowed) or addresses (static, whole).
    """
    if not isinstance(product, Product):
        raise TypeError(f"`product` must be a hopline.Product, and is a `{type(product).__name__}`")
    given = dumps({name: value for name, value in product._members().items() if value is not None})
    return read_quote(loads(told(_hopline.quote, given, dumps(quantity))))
