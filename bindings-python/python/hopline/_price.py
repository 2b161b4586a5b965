"""What a purchase is to cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from . import _hopline
from ._errors import HoplineError
from ._types import Product
from ._value import Value
from ._values import dumps, loads


class Quote(Value):
    """What a purchase is to cost. It binds the service when the product came from `list_products`; the public list shows
    starting prices."""

    product_no: str
    """What is bought."""
    quantity: Decimal
    """GB (dynamic) or addresses (static)."""
    unit_price: Decimal
    """USD for one `unit`."""
    total: Decimal
    """USD for the quantity. Of a static product it is for one `unit` of time, since the service does not document the unit of `duration`."""
    currency: str
    """The currency of the product."""
    unit: str
    """What the price is for."""


def quote(product: Product, quantity: Decimal | float = 1) -> Quote:
    """Prices a quantity of a product, exactly: nothing is sent and nothing is rounded.

    Args:
        product: A product of a list.
        quantity: GB (dynamic, fractions allowed) or addresses (static, whole).
    """
    if not isinstance(product, Product):
        raise TypeError(f"`product` must be a hopline.Product, and is a `{type(product).__name__}`")
    given = dumps({name: value for name, value in product._members().items() if value is not None})
    try:
        told: dict[str, Any] = loads(_hopline.quote(given, dumps(quantity)))
    except ValueError as error:
        raise HoplineError._parse(str(error)) from None
    told.update((name, Decimal(told[name])) for name in ("quantity", "unit_price", "total"))
    return Quote(**told)
