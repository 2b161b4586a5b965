"""The result of a command: as its type, as the failure that is raised, or as notes on the exception that interrupted it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from ._errors import error_of, noted
from ._order import OrderReply
from ._session import SessionReply
from ._told import Busy, HoplineError, NotReady, Saved, read_saved
from ._types import Session, StaticOrder
from ._value import Reply
from ._values import loads
from ._work import in_the_way

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ._work import Taken

R = TypeVar("R", bound=Reply)
Span: TypeAlias = "AbstractContextManager[Callable[[HoplineError], None]]"
"""A context that lasts as long as an operation, and gets its failure."""


def end_span(failed: Callable[[HoplineError], None], taken: Taken | None) -> Taken | None:
    """Reports an operation's failure to its span."""
    if taken is not None and taken.failure is not None:
        failed(error_of(taken.failure))
    return taken


def read(taken: Taken | None, kind: type[R]) -> R:
    """The typed answer, which the core has read."""
    assert taken is not None  # a command that has ended was taken
    if taken.failure is not None:
        raise failure(taken)
    return cast(R, taken.reply)  # the answer of this operation


def read_session(taken: Taken | None) -> SessionReply:
    """Returns the typed answer as a session at the end of its wait."""
    found = read(taken, Session)
    told = loads(taken.facts).get("charged_usd") if taken is not None and taken.facts else None
    charged = None if told is None else Decimal(told)
    return SessionReply(session_id=found.session_id, phase=found.phase or "unknown", session=found, charged_usd=charged)


def unready(error: NotReady) -> SessionReply:
    """Returns the session that was not usable at the deadline."""
    known: dict[str, Any] = error.raw if isinstance(error.raw, dict) else {}
    found = Session(session_id=error.session_id or "", session_type=known.get("session_type"), status=known.get("status") or "")
    return SessionReply(session_id=found.session_id, phase="pending", session=found)


def read_order(taken: Taken | None) -> OrderReply:
    """Returns the typed answer as an order at the end of its wait."""
    found = read(taken, StaticOrder)
    return OrderReply(order_no=found.order_no, phase=found.phase or "unknown", order=found)


def read_any(taken: Taken) -> SessionReply | OrderReply | Reply:
    """Returns the result of a resume: a session or an order if it is one, else the answer."""
    if isinstance(taken.reply, Session):
        return read_session(taken)
    return read_order(taken) if isinstance(taken.reply, StaticOrder) else read(taken, Reply)


def read_page(taken: Taken | None) -> tuple[list[Saved], str | None]:
    """Returns a page of the store's entries, and the name after which the next one begins."""
    page: dict[str, Any] = read(taken, Reply).raw
    return [read_saved(told) for told in page["entries"]], page.get("after")


def stands_for_nothing(taken: Taken) -> bool:
    """Returns true if an intent that was to be resumed is not known."""
    return taken.failure is None and bool(loads(taken.facts).get("nothing"))


def failure(taken: Taken) -> HoplineError:
    """Returns the failure of a command, with the notes made meanwhile."""
    error = error_of(taken.failure or "")
    for note in dict.fromkeys(taken.notes):
        error.add_note(note)
    if isinstance(error, Busy) and (others := in_the_way()) is not None:
        error.add_note(others)
    return error


def explain(operation: str, result: Taken | None, why: BaseException) -> None:
    """Adds the result of a cancelled command to the exception as notes."""
    for taken in () if result is None else (result, *result.parts):
        if taken.failure is not None:
            why.add_note(noted(error_of(taken.failure)))
            continue
        facts = loads(taken.facts)
        ids = [f"{name} `{facts[name]}`" for name in ("session_id", "order_no") if facts.get(name)]
        why.add_note(f"{operation}: it was done before it was given up" + "".join(f"; {one}" for one in ids))
