"""What a command ended with: as its type, as the failure that is raised, or as notes on what interrupted it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from ._errors import error_of, noted
from ._order import OrderReply
from ._session import SessionReply
from ._told import Busy, HoplineError, Saved, read_saved
from ._types import Session, StaticOrder
from ._value import Reply
from ._values import loads
from ._work import in_the_way

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ._work import Owner, Taken

R = TypeVar("R", bound=Reply)
Span: TypeAlias = "AbstractContextManager[Callable[[HoplineError], None]]"
"""Lasts as long as an operation, and is told why that failed."""


def end_span(failed: Callable[[HoplineError], None], taken: Taken | None) -> Taken | None:
    """Tells a span what its operation has ended with."""
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
    """The same for a session that was waited for."""
    found = read(taken, Session)
    told = loads(taken.facts).get("charged_usd") if taken is not None and taken.facts else None
    charged = None if told is None else Decimal(told)
    return SessionReply(session_id=found.session_id, phase=found.phase or "unknown", session=found, charged_usd=charged)


def read_order(taken: Taken | None) -> OrderReply:
    """The same for an order that was waited for."""
    found = read(taken, StaticOrder)
    return OrderReply(order_no=found.order_no, phase=found.phase or "unknown", order=found)


def read_any(taken: Taken) -> SessionReply | OrderReply | Reply:
    """The same for what was resumed: a session or an order where it is one."""
    if isinstance(taken.reply, Session):
        return read_session(taken)
    return read_order(taken) if isinstance(taken.reply, StaticOrder) else read(taken, Reply)


def read_page(taken: Taken | None) -> tuple[list[Saved], str | None]:
    """A page of what the store holds, and the name that the next one begins behind."""
    page: dict[str, Any] = read(taken, Reply).raw
    return [read_saved(told) for told in page["entries"]], page.get("after")


def stands_for_nothing(taken: Taken) -> bool:
    """Whether an intent that was to be resumed stands for nothing."""
    return taken.failure is None and bool(loads(taken.facts).get("nothing"))


def failure(taken: Taken) -> HoplineError:
    """Why a command failed, with what was noted meanwhile."""
    error = error_of(taken.failure or "")
    for note in dict.fromkeys(taken.notes):
        error.add_note(note)
    if isinstance(error, Busy) and (others := in_the_way()) is not None:
        error.add_note(others)
    return error


def explain(operation: str, owner: Owner, why: BaseException) -> None:
    """Notes on the exception what came of a command that was given up for it."""
    for taken in () if owner.taken is None else (owner.taken, *owner.taken.parts):
        if taken.failure is not None:
            why.add_note(noted(error_of(taken.failure)))
            continue
        facts = loads(taken.facts)
        ids = [f"{name} `{facts[name]}`" for name in ("session_id", "order_no") if facts.get(name)]
        why.add_note(f"{operation}: it was done before it was given up" + "".join(f"; {one}" for one in ids))
