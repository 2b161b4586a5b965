"""The building blocks of values: secrets, omitted values, and JSON with exact decimals. Python's own JSON and decimals are imported on
first use, since they take as long as a quarter of this package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from decimal import Decimal


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""An omitted parameter, which differs from `None`."""


class Secret:
    """A text that never prints. `reveal()` returns it; the caller is responsible for where it goes."""

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text: str = text._text if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """Returns the text."""
        return self._text

    def __repr__(self) -> str:
        return "[redacted]"

    def __format__(self, spec: str) -> str:
        return format("[redacted]", spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        from hmac import compare_digest  # imports many other modules

        return compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._text,)


class Misfit(ValueError):
    """The text is not JSON that Python can read."""


_INFINITE = float("inf")
# Python refuses to parse integers of thousands of digits; no number of the API is near that.
_LONGEST_INTEGER: Literal[40] = 40


def loads(body: str | bytes) -> Any:
    """Parses JSON without space around it, with every digit as it was written, or raises `Misfit`."""
    text = body if isinstance(body, str) else body.decode()
    try:
        value, end = _scanner()(text, 0)
    except (ValueError, ArithmeticError, RecursionError, StopIteration):
        value, end = None, -1
    if end != len(text):
        raise Misfit("not JSON that Python can read")
    return value


def prepare() -> None:
    """Imports the modules that `loads` and `dumps` need. An ending interpreter imports nothing any more, but may make a call."""
    _scanner()
    _encoder()


@cache
def _scanner() -> Any:
    from decimal import Decimal
    from json import JSONDecoder

    def integer(digits: str) -> int | Decimal:
        return int(digits) if len(digits) <= _LONGEST_INTEGER else Decimal(digits)

    return JSONDecoder(parse_float=Decimal, parse_int=integer).scan_once  # type: ignore[attr-defined]


def dumps(value: Any) -> str:
    """Writes a value as JSON; of parameters or options without those that are `UNSET`."""
    told = _sendable(value)
    try:
        text = _encoder().encode(told)
    except TypeError as why:
        raise TypeError(_unsendable(told) or str(why)) from None
    return re.sub(f'"{_MARK}([^"]*)"', r"\1", text) if _MARK in text else text


def _unsendable(members: Any) -> str | None:
    """Returns the fault of the first member that JSON can't hold."""
    for name, value in members.items() if isinstance(members, dict) else ():
        try:
            _encoder().encode(value)
        except TypeError as why:
            return _unsendable(value) or f"`{name}`: {why}"
    return None


# Python's JSON can't write a `Decimal` as a number. The number is written as a unique text, which is then unquoted.
_MARK = os.urandom(16).hex()


def _sendable(value: Any) -> Any:
    """A value without members that are `UNSET`. A number that JSON can't hold becomes a text, which the core refuses by the name of its member."""
    if isinstance(value, dict):
        return {name: _sendable(one) for name, one in value.items() if one is not UNSET}
    return str(value) if isinstance(value, float) and not abs(value) < _INFINITE else value


def _plain(value: Any) -> Any:
    from decimal import Decimal

    if isinstance(value, Decimal):
        return f"{_MARK}{value}" if value.is_finite() else str(value)
    if isinstance(value, Secret):
        return value.reveal()
    if (told := getattr(value, "_told", None)) is not None:
        return told()
    if isinstance(value, Mapping):
        return dict(value)
    if (number := _number(value)) is not None:
        return number
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"a `{type(value).__name__}` can't be sent")


def _number(value: Any) -> Any:
    """A number of another package's type, or a fraction, digit for digit; a number without finite digits becomes a text, which the core
    refuses.
    """
    from decimal import Decimal, Inexact, InvalidOperation, localcontext
    from fractions import Fraction
    from operator import index

    if isinstance(value, Fraction):
        with localcontext(prec=60) as context:
            context.traps[Inexact] = True
            try:
                return _plain(Decimal(value.numerator) / Decimal(value.denominator))
            except Inexact:
                return str(value)
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    if hasattr(value, "__index__"):
        return index(value)
    if hasattr(value, "__float__") and not isinstance(value, str | bytes):
        try:
            return _plain(Decimal(str(value)))
        except InvalidOperation:
            return None
    return None


@cache
def _encoder() -> Any:
    from json import JSONEncoder

    return JSONEncoder(default=_plain, ensure_ascii=False)
