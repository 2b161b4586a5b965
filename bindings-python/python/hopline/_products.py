"""The needs of a reseller's product, and the addresses of a range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _hopline
from ._types import ProductRanges, StaticProduct
from ._value import Value
from ._values import dumps, loads

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


def is_shared(product: StaticProduct | ProductRanges | Mapping[str, Any]) -> bool:
    """Returns true if a product is shared static.

    Args:
        product: An item of `query_products` or `list_ip_ranges`, or one as the service wrote it.
    """
    if isinstance(product, StaticProduct | ProductRanges):
        product = {"productType": product.product_type, "projectList": product.project_list}
    if not isinstance(product, Mapping):
        raise TypeError(f"`product` must be a product of a list, and is a `{type(product).__name__}`")
    return _hopline.is_shared(dumps(dict(product)))


def needs_project_id(product: StaticProduct | ProductRanges | Mapping[str, Any]) -> bool:
    """Returns true if an order of a product must name a project, which a shared product needs.

    Args:
        product: An item of `query_products` or `list_ip_ranges`, or one as the service wrote it.
    """
    return is_shared(product)


class IpRange(Value):
    """A range of addresses."""

    text: str
    """The range as the service wrote it."""
    first: IPv4Address | IPv6Address | None = None
    """The first address; `None` if the text is not a range that can be read."""
    last: IPv4Address | IPv6Address | None = None
    """The last address; `None` if the text is not a range that can be read."""


def parse_ip_range(text: str) -> IpRange:
    """Reads a range: a CIDR block, a first and a last address with a hyphen between them, or one address. A text that can't be read is kept
    as `text`.

    Args:
        text: An `ip_range` of `list_ip_ranges`.
    """
    from ipaddress import ip_address  # few programs need it

    told = loads(_hopline.ip_range(text))
    first, last = (ip_address(told[name]) if name in told else None for name in ("first", "last"))
    return IpRange(text=told["text"], first=first, last=last)
