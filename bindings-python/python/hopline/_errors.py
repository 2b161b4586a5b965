"""Raises the printed exceptions: the core's refusals, and those that only this host detects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from . import _hopline
from ._told import HoplineError, Invalid, Misuse, ProtocolError, read_error
from ._values import Misfit, dumps, loads

T = TypeVar("T")


def error_of(text: str) -> HoplineError:
    """Makes the exception of an error from the core."""
    try:
        return read_error(loads(text))
    except Misfit:
        # Only an answer nested deeper than Python can read comes here; the failure must not be lost for it.
        return ProtocolError("the failure itself could not be read; its answer is nested too deep", effect="unknown")


_IDS = ("session_id", "order_no", "intent", "record", "idempotency_key")


def noted(error: HoplineError) -> str:
    """Returns a failure as a note on another exception, with everything that identifies it, since its fields can't be read there."""
    ids = ((name, getattr(error, name, None)) for name in _IDS)
    return "; ".join([str(error), *(f"{name} `{value}`" for name, value in ids if value)])


def told(question: Callable[..., T], *given: Any) -> T:
    """Asks the core, and raises its error."""
    try:
        return question(*given)
    except ValueError as error:
        refused = error_of(str(error))
    raise refused


def ask(question: str, **given: Any) -> dict[str, Any]:
    """Asks the core a question that needs no client, and raises its error."""
    members = dumps(given)
    for name, value in given.items():
        if not is_text(value):
            refuse(question, "not_text", field=name)
    answer: dict[str, Any] = loads(told(_hopline.host_text, question, members))
    return answer


def is_text(value: Any) -> bool:
    """Returns true if a value can be sent: JSON holds no half of a surrogate pair."""
    return not any("\ud800" <= letter <= "\udfff" for letter in dumps(value))


def refuse(operation: str, because: str, **given: str) -> NoReturn:
    """Raises a refusal that every host words the same, before the call reaches the core."""
    ask("refusal", operation=operation, because=because, **given)
    raise AssertionError(f"`{because}` is no reason to refuse anything")


def invalid(operation: str, field: str, rule: str) -> NoReturn:
    """Raises `Invalid` for an argument that never reaches the core."""
    what = f"`{field}` {rule}"
    raise Invalid(f"{operation}: {what}", operation=operation, what=what, field=field, advice="change_request")


def misuse(operation: str, what: str) -> NoReturn:
    """Raises `Misuse` for a fault that only this host detects."""
    raise Misuse(f"{operation}: {what}", operation=operation, what=what)


def check_import() -> None:
    """Refuses to begin a call in an import of the package that another one has replaced: later imports belong to that."""
    if vars(sys.modules.get(__name__, object)) is not globals():
        misuse("client", "the package was imported a second time; nothing was sent; make the client by the import that is valid now")
