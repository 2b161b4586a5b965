"""The options of a client, from arguments and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._commands import in_core_words
from ._errors import check_import, misuse, refuse
from ._store import Store
from ._told import RETRY, Invalid, Options
from ._values import Secret, dumps, prepare

if TYPE_CHECKING:
    from decimal import Decimal

    from ._engine import Engine


def agent_options(
    api_key: str | Secret | None, base_url: str | None, daily_cap_usd: Decimal | float | None, backend_ready: bool | None
) -> dict[str, Any]:
    """Returns the options that only a client of the agent API has."""
    told = Environment()
    return {
        "api": "agent",
        "base_url": told.address(base_url, "HOPLINE_BASE_URL"),
        "api_key": _secret(told.text("api_key", api_key, "HOPLINE_API_KEY")),
        "daily_cap_usd": daily_cap_usd,
        "backend_ready": backend_ready,
        "environment": told,
    }


def reseller_options(
    username: str | Secret | None,
    password: str | Secret | None,
    token: str | Secret | None,
    codes: Mapping[str, Sequence[str] | None],
    base_url: str | None,
) -> dict[str, Any]:
    """Returns the options that only a client of the reseller API has."""
    told = Environment()
    base = told.address(base_url, "HOPLINE_BACKEND_URL")
    if username is None and password is None and token is None:
        # All or nothing: a given token must not be renewed with another login.
        username, password = told.text("username", None, "HOPLINE_USERNAME"), told.text("password", None, "HOPLINE_PASSWORD")
    login = {"username": _secret(username), "password": _secret(password), "token": _secret(token)}
    lists = {name: None if given is None else list(given) for name, given in codes.items()}
    return {"api": "reseller", "base_url": base, "environment": told, **login, **lists}


def new_engine(own: Mapping[str, Any], store: Store | None, same_account: bool, options: Mapping[str, Any]) -> Engine:
    """Makes a client core for these options, or raises for invalid ones. The secrets among them are `Secret`."""
    # Imported with the first client, not before: this is a third of the package. Not later, since an ending interpreter imports nothing any
    # more.
    from ._engine import Engine
    from ._http import _thread  # noqa: F401
    from ._store_handle import CALLS

    prepare()
    check_import()
    for name in options:
        if name not in Options.__annotations__:
            from difflib import get_close_matches

            likely = get_close_matches(name, [*Options.__annotations__, *own], n=1)
            raise TypeError(f"a client has no option `{name}`" + (f"; did you mean `{likely[0]}`?" if likely else ""))
    chosen = {name: value for name, value in own.items() if value is not None}
    told: Environment = chosen.pop("environment")
    chosen.update((name, value) for name, value in options.items() if name not in RETRY and value is not None)
    chosen["retry"] = in_core_words("client", {name: value for name, value in options.items() if name in RETRY})
    if store is not None and (isinstance(store, type) or not all(callable(getattr(store, call, None)) for call in CALLS)):
        misuse("client", f"`store` can't be a `{type(store).__name__}`; give it a store, such as `hopline.FolderStore(path)`")
    chosen.update(store=store is not None, late_calls=getattr(store, "late_calls", False) is True, same_account=same_account)
    try:
        return Engine(Secret(dumps(chosen)), store)
    except Invalid as error:
        if (variable := told.variables.get(error.field or "")) is None:
            raise
        refused = Invalid(str(error).replace("client: ", f"client: in {variable}, ", 1), **error._fields)
    raise refused


class Environment:
    """The values that were taken from the environment, and their variables."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        """By the names of the options."""

    def text(self, name: str, given: Any, variable: str) -> Any:
        """Returns a given option, or the environment's, where a file or a shell may have left a line break behind it."""
        if given is None and (found := os.environ.get(variable)) is not None:
            self.variables[name] = variable
            return found.strip("\r\n") if name == "password" else found.strip()
        return given

    def address(self, given: str | None, variable: str) -> str:
        """Returns the base URL, which a client needs."""
        base: str | None = self.text("base_url", given, variable)
        if base is None:
            refuse("client", "base_url", variable=variable)
        return base


def _secret(text: str | Secret | None) -> Secret | None:
    return None if text is None else Secret(text)
