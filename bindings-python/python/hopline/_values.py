"""What values are made of: secrets, what was left out, JSON with exact decimals, and how a type is read from it."""

import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""A parameter that is left out, which is not the same as `None`."""


class Secret:
    """A text that never prints. `reveal()` gives it, and whoever calls that answers for where it goes."""

    __slots__ = ("_text",)

    def __init__(self, text: "str | Secret") -> None:
        self._text: str = text._text if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """The text itself."""
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
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[type["Secret"], tuple[str]]:
        return Secret, (self._text,)


class Misfit(ValueError):
    """An answer does not have the shape of its type; the text says where."""


Reader: TypeAlias = Callable[[Any, str], Any]
"""Reads a value that was parsed; its place is for the message."""
Members: TypeAlias = dict[str, tuple[Reader, bool]]
"""The members of a type: how each is read, and whether it must be there."""


class Value:
    """An object of the API. It cannot be changed; it can be compared, copied and pickled."""

    __slots__ = ()
    _members: ClassVar[Members] = {}

    @classmethod
    def _read(cls, data: Any, place: str) -> Self:
        return cls(**_read_members(cls._members, data, place))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Value):
    """What an operation was answered with."""

    raw: Any = field(default=None, repr=False, compare=False)
    """The whole answer as JSON, known and unknown members alike; numbers with a fraction are `Decimal`. It may hold secrets."""
    request_id: str | None = field(default=None, compare=False)
    """To quote when reporting a problem."""

    @classmethod
    def _answer(cls, data: Any, request_id: str | None) -> Self:
        members = _read_members(cls._members, data, "data") if cls._members else {}
        return cls(**members, raw=data, request_id=request_id)

    @classmethod
    def _read(cls, data: Any, place: str) -> Self:
        return cls(**_read_members(cls._members, data, place), raw=data)


def _read_members(members: Members, data: Any, place: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Misfit(f"`{place}`, which is no object")
    found = {}
    for name, (reader, required) in members.items():
        value = data.get(name)
        if value is not None:
            found[name] = reader(value, f"{place}.{name}")
        elif required:
            raise Misfit(f"`{place}.{name}`, which is missing")
    return found


def _of(*kinds: type, what: str, make: Callable[[Any], Any] = lambda value: value) -> Reader:
    def read(value: Any, place: str) -> Any:
        # `True` is an `int` to Python and none to the API.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise Misfit(f"`{place}`, which is no {what}")
        return make(value)

    return read


text = _of(str, what="text")
secret = _of(str, what="text", make=Secret)
flag = _of(bool, what="truth value")
whole = _of(int, what="whole number")
decimal = _of(int, Decimal, what="number", make=Decimal)


def anything(value: Any, _place: str) -> Any:
    """Reads what the contract does not show."""
    return value


def many(item: Reader) -> Reader:
    """Reads a list."""

    def read(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Misfit(f"`{place}`, which is no list")
        return tuple(item(one, f"{place}[{n}]") for n, one in enumerate(value))

    return read


# Python refuses to parse integers of thousands of digits; no number of the API is near that.
_LONGEST_INTEGER: Literal[40] = 40


def loads(body: str) -> Any:
    """Parses JSON with every digit as it was written, or raises `Misfit`."""
    try:
        return json.loads(body, parse_float=Decimal, parse_int=_integer)
    except (ValueError, ArithmeticError, RecursionError):
        raise Misfit("a place that Python's JSON can't read") from None


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else Decimal(digits)


def dumps(members: dict[str, Any]) -> str:
    """Writes parameters or options as JSON, without those that are `UNSET`."""
    given = {name: value for name, value in members.items() if value is not UNSET}
    return json.dumps(given, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)  # the core takes a number's text for the number
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"a `{type(value).__name__}` can't be sent")
