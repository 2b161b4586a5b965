"""What raises the exceptions that are printed: the core's refusals, and those that only this host can tell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from . import _hopline
from ._told import HoplineError, Invalid, Misuse, ProtocolError, read_error
from ._values import Misfit, dumps, loads

T = TypeVar("T")


def error_of(text: str) -> HoplineError:
    """The exception of an error that the core gave."""
    try:
        return read_error(loads(text))
    except Misfit:
        # Only an answer nested deeper than Python can read comes here; it is not worth losing the failure for.
        return ProtocolError("the failure itself could not be read; its answer is nested too deep", effect="unknown")


_IDS = ("session_id", "order_no", "intent", "record", "idempotency_key")


def noted(error: HoplineError) -> str:
    """A failure as a note on another exception, where nobody can ask for its fields: with all that it can be found by."""
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
    """Asks the core what needs no client, and raises its error."""
    for name, value in given.items():
        if not is_text(value):
            refuse(question, "not_text", field=name)
    members = ",".join(f"{dumps(name)}:{dumps(value)}" for name, value in given.items())
    answer: dict[str, Any] = loads(told(_hopline.host_text, question, f"{{{members}}}"))
    return answer


def is_text(value: Any) -> bool:
    """Whether a value can be sent: JSON holds no half of a surrogate pair."""
    return not any("\ud800" <= letter <= "\udfff" for letter in dumps(value))


def refuse(operation: str, because: str, **given: str) -> NoReturn:
    """Raises what every host refuses in the same words, before its core hears of it."""
    ask("refusal", operation=operation, because=because, **given)
    raise AssertionError(f"`{because}` is no reason to refuse anything")


def invalid(operation: str, field: str, rule: str) -> NoReturn:
    """Raises `Invalid` for an argument that never reaches the core."""
    what = f"`{field}` {rule}"
    raise Invalid(f"{operation}: {what}", operation=operation, what=what, field=field, advice="change_request")


def misuse(operation: str, what: str) -> NoReturn:
    """Raises `Misuse` for something that only this host can tell."""
    raise Misuse(f"{operation}: {what}", operation=operation, what=what)


def check_import() -> None:
    """Refuses to begin something in an import of the package that another one has taken the place of: what is imported later belongs to that."""
    if vars(sys.modules.get(__name__, object)) is not globals():
        misuse("client", "the package was imported a second time; nothing was sent; make the client by the import that is valid now")
