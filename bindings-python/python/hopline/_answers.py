"""What a command ended with, as its type or as the failure to raise."""

from typing import Any, TypeVar

from ._errors import HoplineError
from ._facts import Saved
from ._hopline import misfit
from ._order import OrderReply
from ._session import SessionReply
from ._types import Session, StaticOrder
from ._values import Misfit, Reply, dumps, loads
from ._work import Taken

R = TypeVar("R", bound=Reply)


def read(operation: str, taken: Taken, reply: type[R]) -> R | HoplineError:
    """The typed answer, or the failure, for the caller to raise."""
    if taken.failure is not None:
        return _failure(taken)
    phase: Any = taken.phase
    try:
        data = loads(taken.raw)
    except Misfit as place:
        # What Python's JSON can't read is kept as its text.
        return _misfit(operation, taken.facts, dumps(taken.raw), place)
    try:
        view = data if taken.view is None else loads(taken.view)
        return reply._answer(data, view, loads(taken.facts).get("request_id"), phase)
    except Misfit as place:
        return _misfit(operation, taken.facts, taken.raw, place)


def read_session(operation: str, taken: Taken) -> SessionReply | HoplineError:
    """The same for a session that was waited for."""
    found = read(operation, taken, Session)
    if isinstance(found, HoplineError):
        return found
    phase: Any = taken.phase or "unknown"
    return SessionReply(session_id=found.session_id, phase=phase, session=found, raw=found.raw)


def read_order(operation: str, taken: Taken) -> OrderReply | HoplineError:
    """The same for an order that was waited for."""
    found = read(operation, taken, StaticOrder)
    if isinstance(found, HoplineError):
        return found
    phase: Any = taken.phase or "unknown"
    return OrderReply(order_no=found.order_no, phase=phase, order=found, raw=found.raw)


def read_any(taken: Taken) -> SessionReply | OrderReply | Reply | HoplineError:
    """The same for what was resumed: a session or an order where it is one."""
    if taken.phase is None:
        return read("resume", taken, Reply)
    if "order_no" in loads(taken.facts):
        return read_order("create_static_order", taken)
    return read_session("create_session", taken)


def read_value(taken: Taken) -> Any:
    """The value of what people do about records; its failure is raised."""
    if taken.failure is not None:
        raise _failure(taken)
    return loads(taken.raw)


def read_saved(taken: Taken) -> tuple[list[Saved], str | None]:
    """A page of what the store holds, and the name that the next one begins behind."""
    page: dict[str, Any] = read_value(taken)
    return [Saved._of(told) for told in page["entries"]], page.get("after")


def stands_for_nothing(taken: Taken) -> bool:
    """Whether an intent that was to be resumed stands for nothing: then there is neither an answer nor anything that is known."""
    return taken.failure is None and taken.raw == "null" and not loads(taken.facts).get("settled")


def _failure(taken: Taken) -> HoplineError:
    error = HoplineError._parse(taken.failure or "")
    for note in dict.fromkeys(taken.notes):
        error.add_note(note)
    return error


def _misfit(operation: str, facts: str, raw: str, place: Misfit) -> HoplineError:
    return HoplineError._parse(misfit(operation, facts, raw, str(place)))
