"""What values are made of: secrets, what was left out, JSON with exact decimals, and how a type is read from it."""

import hmac
import json
import math
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias


Phase: TypeAlias = Literal["pending", "ready", "ended", "unknown"]
"""Where a session or an order is: not usable yet, usable, over, or in a status that the contract does not name. Of a read with `until`,
whether it holds: `ready` or, at the deadline, `pending`."""
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
"""An HTTP method."""
Safety: TypeAlias = Literal["safe", "idempotent", "twice_at_most", "keyed", "at_most_once"]
"""What may be done after a failure whose effect is unknown.

- `safe`: It changes nothing: send it again.
- `idempotent`: A repeat changes nothing more: send it again.
- `twice_at_most`: A repeat changes nothing more, but somebody notices it: send it again once.
- `keyed`: Send the same bytes with the same `Idempotency-Key`.
- `at_most_once`: Never send it again: the operation is in doubt.
"""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """What a read is repeated for. It ends when the value at `at` is one of `is_`, or a number of at least `at_least`."""

    at: str
    """Where in the answer's data to look: a JSON pointer (RFC 6901) such as `/status`."""
    is_: Sequence[str] = ()
    """The words that end it."""
    at_least: Decimal | float | None = None
    """The number that ends it, once it is reached."""

    def __post_init__(self) -> None:
        if isinstance(self.is_, str):
            raise TypeError("`is_` must be a list of words, not one text")


class Misfit(ValueError):
    """An answer does not have the shape of its type; the text says where."""


Reader: TypeAlias = Callable[[Any, str], Any]
"""Reads a value that was parsed; its place is for the message."""
Members: TypeAlias = dict[str, tuple[str, Reader, bool]]
"""The members of a type, by their names in an answer: their own names, how each is read, and whether it must be there."""


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
    phase: Phase | None = field(default=None, compare=False)
    """Of a session or an order: where it is. Of a read with `until`: `ready` when it holds, `pending` when the deadline came first."""

    @classmethod
    def _answer(cls, raw: Any, view: Any, request_id: str | None, phase: Phase | None) -> Self:
        members = _read_members(cls._members, view, "data") if cls._members else {}
        return cls(**members, raw=raw, request_id=request_id, phase=phase)

    @classmethod
    def _read(cls, data: Any, place: str) -> Self:
        return cls(**_read_members(cls._members, data, place), raw=data)


def _read_members(members: Members, data: Any, place: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Misfit(f"`{place}`, which is no object")
    found = {}
    for written, (name, reader, required) in members.items():
        value = data.get(written)
        if value is not None:
            found[name] = reader(value, f"{place}.{written}")
        elif required:
            raise Misfit(f"`{place}.{written}`, which is missing")
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
    """Reads what the contract does not document."""
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


def dumps(value: Any) -> str:
    """Writes a value as JSON; of parameters or options without those that are `UNSET`."""
    if isinstance(value, dict):
        value = {name: _finite(one) for name, one in value.items() if one is not UNSET}
    return _NUMBER.sub(r"\1", json.dumps(value, default=_plain, ensure_ascii=False))


# Python's JSON can't write a `Decimal` as a number. It is written as a text that nothing else can be, and then unquoted.
_MARK = secrets.token_hex(16)
_NUMBER = re.compile(f'"{_MARK}([^"]*)"')


def _finite(value: Any) -> Any:
    """What no JSON can say becomes a text, which the core refuses by the name of its member."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{_MARK}{value}" if value.is_finite() else str(value)
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, Until):
        return {"at": value.at, "is": list(value.is_), "at_least": value.at_least}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    raise TypeError(f"a `{type(value).__name__}` can't be sent")
