"""Begins commands: the operation, the parameters and the options, as the core reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _hopline
from ._errors import invalid, is_text, refuse
from ._told import SECONDS
from ._values import dumps, loads

if TYPE_CHECKING:
    from ._work import Begin, Owner


def begin(operation: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> Begin:
    """Returns a function that begins an operation."""
    return begin_as(operation, dumps(dict(params)) if params else "{}", options)


def begin_as(operation: str, params: str, options: Mapping[str, Any]) -> Begin:
    """Returns a function that begins an operation, with parameters that are JSON already."""
    told = in_core_words(operation, options)
    chosen = dumps(told) if told else "{}"

    def start(core: _hopline.Client, owner: Owner) -> _hopline.Turn:
        try:
            return core.begin(owner, operation, params, chosen)
        except UnicodeEncodeError:
            known = {**loads(params), **options}
            refuse(operation, "not_text", field=next(name for name, value in known.items() if not is_text(value)))

    return start


def resuming(record: str | None, intent: str | None, options: Mapping[str, Any]) -> Begin:
    """Returns a function that resumes a record or an intent."""
    chosen = dumps(in_core_words("resume", options))
    if intent is not None and record is None:
        return lambda core, owner: core.resume_intent(intent, chosen, owner)
    if record is None or intent is not None:
        invalid("resume", "intent", "or a record must be given, and not both")
    return lambda core, owner: core.resume(record, chosen, owner)


def resuming_all(options: Mapping[str, Any]) -> Begin:
    """Returns a function that resumes everything that no living client owns."""
    chosen = dumps(in_core_words("resume_all", options))
    return lambda core, owner: core.resume_all(chosen, owner)


def listing(after: str | None) -> Begin:
    """Returns a function that reads a page of the store."""
    return lambda core, owner: core.saved(after, owner)


_LEAST = {"rotate_after_ms": 1, "max_lease_ms": 0.001}
"""The least times of a pool, in seconds, where none is too little."""


def pool_params(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a pool's request, as the core has them: without omitted ones, and milliseconds for seconds."""
    told = {name: value for name, value in params.items() if value is not None}
    in_ms = {name: _ms(operation, name[:-3], value, _LEAST.get(name, 0)) for name, value in told.items() if name.endswith("_ms")}
    return {**told, **in_ms}


def in_core_words(operation: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the core has them: without omitted ones, and milliseconds for seconds."""
    told: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in SECONDS:
            least = 0.001 if name in ("timeout", "window") else 0
            told[f"{name}_ms"] = _ms(operation, name, value, least, 2_147_483 if name == "timeout" else 1e12)
        else:
            told[name] = value
    return told


def _ms(operation: str, name: str, seconds: Any, least: float = 0, most: float = 1e12) -> int:
    kind = type(seconds)
    is_none = issubclass(kind, str | bytes | type) or kind.__name__ in ("bool", "bool_")
    if is_none or not hasattr(seconds, "__float__") or seconds != seconds:
        raise TypeError(f"`{name}` must be a number of seconds")
    number = float(seconds)
    # In seconds: the core would report milliseconds.
    if not least <= number <= most:
        invalid(operation, name, f"must be at least {least} seconds" if number < least else f"must be at most {most:.0f} seconds")
    return round(number * 1000)
