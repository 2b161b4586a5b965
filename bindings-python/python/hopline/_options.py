"""What a client is made of, from arguments and the environment."""

import os
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypedDict

from ._bases import in_core_words
from ._engine import Engine
from ._errors import invalid
from ._store import MemoryStore, Store
from ._values import Secret, dumps


class Options(TypedDict, total=False):
    """How a client repeats, waits and reads. What is left out is as the core has it."""

    account: str
    """Names the account in records when there is no key to know it by."""
    allow_http: bool
    """Allows plain http to a host that is not loopback."""
    max_body: int
    """The longest body that is read, in bytes."""
    daily_cap_usd: Decimal | float
    """The most, in USD, that this client buys in a UTC day: what was charged, what is in doubt and what is under way; recharges
    do not count. The account's own limit is `daily_limit_usd` of `update_budget`, which holds across clients."""
    backend_ready: bool
    """`backend_ready` as `register_account` answered. Known to be false, nothing is bought."""
    attempts: int
    """How often a request is sent at most, the first time included."""
    window: float
    """Seconds from the first send within which another may be made."""
    timeout: float
    """Seconds that one attempt may take."""
    backoff: float
    """Seconds that the first repeat waits at most; each further one up to twice as long."""
    throttled_backoff: float
    """The same after the service asked to slow down."""
    max_backoff: float
    """No wait before a repeat is longer than this many seconds."""
    conflict: float
    """Seconds to wait, in all, for an earlier request with the same key to end."""
    retry_paid: bool
    """Whether a paid operation that the service failed may be bought again with a new key."""


_OF_CLIENT = ("account", "allow_http", "max_body", "daily_cap_usd", "backend_ready")


def new_engine(
    api_key: str | Secret | None, base_url: str | None, store: Store | None, same_account: bool, options: Mapping[str, Any]
) -> Engine:
    """A client core for these arguments, or what is wrong with them."""
    base = base_url if base_url is not None else os.environ.get("HOPLINE_BASE_URL")
    if base is None:
        invalid("client", "base_url", "is missing; give it or set HOPLINE_BASE_URL")
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"a client has no option `{name}`")
    given = api_key if api_key is not None else os.environ.get("HOPLINE_API_KEY")
    chosen = {"base_url": base, **{name: options[name] for name in _OF_CLIENT if name in options}}
    if given is not None:
        # What holds the key is a secret from here on, so that no traceback can show it.
        given = chosen["api_key"] = Secret(given)
    chosen["retry"] = in_core_words({name: value for name, value in options.items() if name not in _OF_CLIENT})
    capped = options.get("daily_cap_usd") is not None
    return Engine(Secret(dumps(chosen)), MemoryStore() if store is None else store, same_account, capped)
