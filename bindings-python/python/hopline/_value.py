"""The objects of the API. Their classes are printed; the core makes them when it reads an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, dataclass_transform

from ._values import loads

if TYPE_CHECKING:
    from decimal import Decimal

    from ._told import Phase


class _Member:
    """The properties of a member beside its type."""

    __slots__ = ("compare", "default", "init", "repr")

    def __init__(self, default: Any, init: bool, repr: bool, compare: bool) -> None:
        self.default, self.init, self.repr, self.compare = default, init, repr, compare


_NEEDED = object()


def field(*, default: Any = _NEEDED, init: bool = True, repr: bool = True, compare: bool = True) -> Any:
    """Declares a member that is set by hand, does not print, or does not count when objects are compared."""
    return _Member(default, init, repr, compare)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Class(type):
    """Makes a class with a slot for each member that its body names."""

    _own: list[str]
    """The members that its body names."""
    _fields: dict[str, _Member]

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Class:
        own = {member: body.pop(member, _NEEDED) for member in body.get("__annotations__", ())}
        body["__slots__"] = tuple(own)
        made = super().__new__(cls, name, bases, body)
        inherited = bases[0]._fields if bases and isinstance(bases[0], _Class) else {}
        told = {member: said if isinstance(said, _Member) else _Member(said, True, True, True) for member, said in own.items()}
        made._own = list(own)
        made._fields = {**{member: said for member, said in told.items() if said.init}, **inherited}
        return made


_set = object.__setattr__


class _DataclassFields:
    """The members in the form of `dataclasses`, whose `replace`, `fields` and `asdict` a type checker allows. Few programs need them."""

    def __get__(self, instance: object, kind: type[Value]) -> dict[str, Any]:
        import dataclasses

        def member(name: str, said: _Member) -> Any:
            default = dataclasses.MISSING if said.default is _NEEDED else said.default
            made: Any = dataclasses.field(default=default, repr=said.repr, compare=said.compare, kw_only=True)
            made.name, made.type, made._field_type = name, Any, dataclasses._FIELD  # type: ignore[attr-defined]
            return made

        names = {name: name.removeprefix("_") for name in kind._fields}
        return {names[name]: member(names[name], said) for name, said in kind._fields.items()}


class Value(metaclass=_Class):
    """An object of the API, which can be compared, copied and pickled, but not changed."""

    if not TYPE_CHECKING:  # a type checker knows better: it reads the members
        __dataclass_fields__ = _DataclassFields()

        def __init__(self, **members: Any) -> None:
            for name, member in type(self)._fields.items():
                value = members.pop(name, member.default)
                if value is _NEEDED:
                    raise TypeError(f"`{type(self).__name__}` needs `{name}`")
                _set(self, name, value)
            if members:
                raise TypeError(f"`{type(self).__name__}` has no `{next(iter(members))}`")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"`{name}` can't be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"`{name}` can't be changed")

    def _members(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self)._fields}

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name, member in type(self)._fields.items() if member.compare)

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if isinstance(other, Value) and type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name, member in type(self)._fields.items() if member.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_of, (type(self), self._members())

    def __replace__(self, **members: Any) -> Any:
        if (unknown := next((name for name in members if name not in type(self)._fields), None)) is not None:
            raise TypeError(f"`{type(self).__name__}` has no `{unknown}`")
        slots = [name for kind in type(self).__mro__ for name in getattr(kind, "_own", ()) if hasattr(self, name)]
        return _made_of(type(self), {name: getattr(self, name) for name in slots} | members)


def _made_of(kind: type[Value], members: dict[str, Any]) -> Value:
    made = kind.__new__(kind)
    for name, value in members.items():
        _set(made, name, value)
    return made


class Reply(Value):
    """The answer of an operation."""

    request_id: str | None = field(default=None, compare=False)
    """The request id, to quote when reporting a problem."""
    phase: Phase | None = field(default=None, compare=False)
    """Of a session or an order: its phase. Of a read with `until`: `ready` if its condition holds, `pending` if the deadline came first."""

    if TYPE_CHECKING:
        raw: Any = field(default=None, repr=False, compare=False)
    else:
        _raw: Any = field(default=None, repr=False, compare=False)

        def __init__(self, *, raw: Any = None, **members: Any) -> None:
            super().__init__(_raw=raw, **members)

        def __replace__(self, **members: Any) -> Any:
            return super().__replace__(**{"_raw" if name == "raw" else name: value for name, value in members.items()})

        @property
        def raw(self) -> Any:
            """The whole answer as JSON, known and unknown members alike; numbers with a fraction are `Decimal`. The value may hold secrets.
            """
            # Parsed on first use. JSON itself is never bytes.
            if type(self._raw) is bytes:
                _set(self, "_raw", loads(self._raw))
            return self._raw

    def money(self, at: str) -> Decimal:
        """An amount of the whole answer, such as `money("/balance")`, exact whether it was written with a fraction, without one, or as
        text.

        Args:
            at: The place of the amount: a JSON pointer (RFC 6901).

        Raises `LookupError` if there is no amount.
        """
        from decimal import Decimal, InvalidOperation

        found: Any = self.raw
        try:
            for part in at.split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                found = found[int(name)] if isinstance(found, list | tuple) else found[name]
            amount = None if isinstance(found, bool) or not isinstance(found, int | str | Decimal) else Decimal(found)
        except (LookupError, TypeError, ValueError, InvalidOperation):
            amount = None
        if amount is None or not amount.is_finite():
            raise LookupError(f"the answer has no amount at `{at}`")
        return amount


class Until(Value):
    """The condition that ends a repeated read: the value at `at` is one of `is_`, or a number of at least `at_least`."""

    at: str
    """The place of the value in the answer's data: a JSON pointer (RFC 6901) such as `/status`."""
    is_: Sequence[str] = ()
    """The words that end the read."""
    at_least: Decimal | float | None = None
    """The least number that ends the read."""

    if not TYPE_CHECKING:

        def __init__(self, **members: Any) -> None:
            super().__init__(**members)
            if isinstance(self.is_, str):
                raise TypeError("`is_` must be a list of words, not one text")

    def _told(self) -> dict[str, Any]:
        told = {"at": self.at, "is": list(self.is_), "at_least": self.at_least}
        return {name: value for name, value in told.items() if value is not None}


class Cheapest(Value):
    """A choice of a product: the cheapest one of the account's own list that fits. `cheapest` makes one.

    Prices are compared within one unit. Products in another currency than USD, without enough stock or not available are passed over, and so
    are shared ones, unless `sharing` or the `project_id` of the purchase is set.
    """

    type: str
    """`dynamic` or `static`."""
    country: str | None = None
    """The country, as the product has it."""
    city: str | None = None
    """The city, as the product has it."""
    sharing: str | None = None
    """`exclusive` or `shared`."""
    project_id: str | None = None
    """The project of the purchase, with which shared products fit, too."""
    unit: str | None = None
    """The unit of the price, required where products with several units fit."""
    max_unit_price: Decimal | float | None = None
    """The highest price of one unit, in USD. Without any limit nothing dearer than the first choice is bought."""

    def _told(self) -> dict[str, Any]:
        told = {"session_type": self.type, **{name: value for name, value in self._members().items() if name != "type"}}
        return {name: value for name, value in told.items() if value is not None}


def cheapest(
    *,
    type: Literal["dynamic", "static"],
    country: str | None = None,
    city: str | None = None,
    sharing: Literal["exclusive", "shared"] | None = None,
    project_id: str | None = None,
    unit: str | None = None,
    max_unit_price: Decimal | float | None = None,
) -> Cheapest:
    """Returns the choice of the cheapest product that fits, for `product` of `open_session`, `create_session` and `open_pool`."""
    return Cheapest(type=type, country=country, city=city, sharing=sharing, project_id=project_id, unit=unit, max_unit_price=max_unit_price)
