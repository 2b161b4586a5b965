"""What a client is made of, from arguments and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._commands import in_core_words
from ._errors import misuse, refuse
from ._store import Store
from ._told import RETRY, Options
from ._values import Secret, dumps, prepare

if TYPE_CHECKING:
    from decimal import Decimal

    from ._engine import Engine


def agent_options(
    api_key: str | Secret | None, base_url: str | None, daily_cap_usd: Decimal | float | None, backend_ready: bool | None
) -> dict[str, Any]:
    """What only a client of the agent API has."""
    return {
        "api": "agent",
        "base_url": _address(base_url, "HOPLINE_BASE_URL"),
        "api_key": _secret(api_key if api_key is not None else os.environ.get("HOPLINE_API_KEY")),
        "daily_cap_usd": daily_cap_usd,
        "backend_ready": backend_ready,
    }


def reseller_options(
    username: str | Secret | None,
    password: str | Secret | None,
    token: str | Secret | None,
    codes: Mapping[str, Sequence[str] | None],
    base_url: str | None,
) -> dict[str, Any]:
    """What only a client of the reseller API has."""
    base = _address(base_url, "HOPLINE_BACKEND_URL")
    if username is None and password is None and token is None:
        # All or nothing: a token must not be renewed as somebody else.
        username, password = (_secret(os.environ.get(name)) for name in ("HOPLINE_USERNAME", "HOPLINE_PASSWORD"))
    login = {"username": _secret(username), "password": _secret(password), "token": _secret(token)}
    lists = {name: None if given is None else list(given) for name, given in codes.items()}
    return {"api": "reseller", "base_url": base, **login, **lists}


def new_engine(own: Mapping[str, Any], store: Store | None, same_account: bool, options: Mapping[str, Any]) -> Engine:
    """A client core for these options, or what is wrong with them. The secrets among them are `Secret`."""
    # Not before somebody makes a client: this is a third of the package. Not later, since an interpreter that ends imports nothing any more.
    from ._engine import Engine
    from ._http import _thread  # noqa: F401
    from ._store_handle import CALLS

    prepare()
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"a client has no option `{name}`")
    chosen = {name: value for name, value in own.items() if value is not None}
    chosen.update((name, value) for name, value in options.items() if name not in RETRY and value is not None)
    chosen["retry"] = in_core_words("client", {name: value for name, value in options.items() if name in RETRY})
    if store is not None and (isinstance(store, type) or not all(callable(getattr(store, call, None)) for call in CALLS)):
        misuse("client", f"`store` can't be a `{type(store).__name__}`; give it a store, such as `hopline.FolderStore(path)`")
    chosen.update(store=store is not None, late_calls=getattr(store, "late_calls", False) is True, same_account=same_account)
    return Engine(Secret(dumps(chosen)), store)


def _address(given: str | None, variable: str) -> str:
    base = given if given is not None else os.environ.get(variable)
    if base is None:
        refuse("client", "base_url", variable=variable)
    return base


def _secret(text: str | Secret | None) -> Secret | None:
    return None if text is None else Secret(text)
