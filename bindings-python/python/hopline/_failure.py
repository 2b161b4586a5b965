"""The base of Hopline's exceptions, which are printed, and the readers of the core's times and amounts."""

from __future__ import annotations

from typing import Any


class Failure(Exception):
    """A sentence, with its fields as attributes."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if cls.__module__ == "hopline._told":
            # A traceback names an exception as a program does.
            cls.__module__ = "hopline"

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self._fields = fields
        vars(self).update({"what": message} | fields)
        if (cause := fields.get("cause")) is not None:
            self.__cause__ = cause

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The state carries notes, which exceptions do not pickle by themselves.
        return _again, (type(self), str(self), self._fields, getattr(self, "__notes__", None))


def _again(cls: type[Failure], message: str, fields: dict[str, Any], notes: list[str] | None) -> Failure:
    error = cls(message, **fields)
    for note in notes or []:
        error.add_note(note)
    return error


def moment(ms: int | None) -> Any:
    """A time of the core as a `datetime`. A time beyond Python's last year, or before its first, becomes the end of that range."""
    if ms is None:
        return None
    from datetime import UTC, datetime, timedelta

    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        return (datetime.max if ms > 0 else datetime.min).replace(tzinfo=UTC)


def seconds(ms: int | None) -> Any:
    """A length of time."""
    return None if ms is None else ms / 1000


def money(digits: Any) -> Any:
    """A decimal number, which the core gives as text."""
    from decimal import Decimal

    return None if digits is None else Decimal(digits)
