"""What a command ended with, as its type or as the failure to raise."""

from __future__ import annotations

from typing import Any, TypeVar

from ._errors import HoplineError
from ._facts import Saved
from ._order import OrderReply
from ._session import SessionReply
from ._types import Session, StaticOrder
from ._value import Reply
from ._values import loads
from ._work import Taken

R = TypeVar("R", bound=Reply)


def read(taken: Taken, kind: type[R]) -> R | HoplineError:
    """The typed answer, which the core has read, or the failure, for the caller to raise."""
    if taken.failure is not None:
        return _failure(taken)
    assert isinstance(taken.reply, kind)  # the answer of this operation
    return taken.reply


def read_session(taken: Taken) -> SessionReply | HoplineError:
    """The same for a session that was waited for."""
    found = read(taken, Session)
    if isinstance(found, HoplineError):
        return found
    return SessionReply(session_id=found.session_id, phase=found.phase or "unknown", session=found)


def read_order(taken: Taken) -> OrderReply | HoplineError:
    """The same for an order that was waited for."""
    found = read(taken, StaticOrder)
    if isinstance(found, HoplineError):
        return found
    return OrderReply(order_no=found.order_no, phase=found.phase or "unknown", order=found)


def read_any(taken: Taken) -> SessionReply | OrderReply | Reply | HoplineError:
    """The same for what was resumed: a session or an order where it is one."""
    if isinstance(taken.reply, Session):
        return read_session(taken)
    if isinstance(taken.reply, StaticOrder):
        return read_order(taken)
    return read(taken, Reply)


def read_value(taken: Taken) -> Any:
    """The value of what people do about records; its failure is raised."""
    found = read(taken, Reply)
    if isinstance(found, HoplineError):
        raise found
    return found.raw


def read_saved(taken: Taken) -> tuple[list[Saved], str | None]:
    """A page of what the store holds, and the name that the next one begins behind."""
    page: dict[str, Any] = read_value(taken)
    return [Saved._of(told) for told in page["entries"]], page.get("after")


def stands_for_nothing(taken: Taken) -> bool:
    """Whether an intent that was to be resumed stands for nothing."""
    return taken.failure is None and bool(loads(taken.facts).get("nothing"))


def _failure(taken: Taken) -> HoplineError:
    error = HoplineError._parse(taken.failure or "")
    for note in dict.fromkeys(taken.notes):
        error.add_note(note)
    return error
