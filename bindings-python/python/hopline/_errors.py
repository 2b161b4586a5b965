"""What an operation can end with other than its answer: one exception for each kind of failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

from . import _hopline
from ._values import Misfit, dumps, loads

Kind: TypeAlias = Literal[
    "invalid", "refused", "unavailable", "in_doubt", "protocol", "decode", "busy", "cancelled", "store", "misuse", "ended"
]
"""What kind of failure it is. The list is closed."""
Effect: TypeAlias = Literal["none", "unknown", "done"]
"""Whether the operation had its effect: `none` and it never will, `unknown` as nobody knows yet, or `done`."""


class HoplineError(Exception):
    """A failure, with all that is needed to decide what to do next. It holds no secret, unless `raw` does.

    It prints as one sentence: what happened to which operation, whether money may have moved, what to do next.
    """

    _kinds: ClassVar[dict[str, type["HoplineError"]]] = {}
    _kind: ClassVar[Kind]

    kind: Kind
    """What kind of failure."""
    effect: Effect
    """Whether the operation had its effect."""
    operation: str
    """Which operation."""
    what: str
    """What happened, as the middle of a sentence."""
    advice: str
    """What to do next, as a word such as `resume`, `reconcile`, `wait_order` or `recharge`."""
    field: str | None
    """The field that was refused; of `decode`, where in the answer it does not fit, such as `data.items[3].price`."""
    code: str | None
    """The service's code, as it came."""
    status: int | None
    """The HTTP status."""
    text: str | None
    """The service's own text, whose beginning is part of the message, or the beginning of a body that is not in the API's format."""
    content_type: str | None
    """The content type of such a body."""
    details: Any
    """The service's details, as they came."""
    request_id: str | None
    """To quote when reporting a problem."""
    idempotency_key: str | None
    """The idempotency key of the last send."""
    intent: str | None
    """Your own name for the operation."""
    session_id: str | None
    """The session it was about, where that is known."""
    order_no: str | None
    """The number of the order it was about, where that is known."""
    record: str | None
    """The record to resume, reconcile or settle it by."""
    retry_at: datetime | None
    """Not before this time."""
    attempts: int
    """How often it was sent."""
    is_refused_by_us: bool
    """Whether a `Refused` comes from this client and not from the service: from the daily cap, the price limit, an account that is not
    ready, a `settle` that came too early, a `forget` of a session that the client has, a record that has changed, or a `reconcile` that
    has nothing to look up."""
    raw: Any
    """`data` of a success that does not fit its type; its text, where Python's JSON can't read it. It may hold secrets."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self._fields = fields
        self.kind = self._kind
        self.effect = fields.get("effect", "none")
        self.operation = fields.get("operation", "")
        self.what = fields.get("what", message)
        self.advice = fields.get("advice", "nothing")
        self.field = fields.get("field")
        self.code = fields.get("code")
        self.status = fields.get("status")
        self.text = fields.get("text")
        self.content_type = fields.get("content_type")
        self.details = fields.get("details")
        self.request_id = fields.get("request_id")
        self.idempotency_key = fields.get("idempotency_key")
        self.intent = fields.get("intent")
        self.session_id = fields.get("session_id")
        self.order_no = fields.get("order_no")
        self.record = fields.get("record")
        self.retry_at = moment(fields.get("retry_at"))
        self.attempts = fields.get("attempts", 0)
        self.is_refused_by_us = fields.get("refused_by_us", False)
        self.raw = fields.get("raw")
        cause = fields.get("cause")
        if cause is not None:
            self.__cause__ = HoplineError._of(cause)

    def __init_subclass__(cls, kind: Kind) -> None:
        cls._kind = kind
        HoplineError._kinds[kind] = cls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The state carries notes, which exceptions do not pickle by themselves.
        notes = getattr(self, "__notes__", None)
        return _again, (type(self), str(self), self._fields, notes)

    @staticmethod
    def _of(fields: dict[str, Any]) -> HoplineError:
        """The exception of an error that the core gave."""
        known = dict(fields)
        cls = HoplineError._kinds.get(known.pop("kind", ""), Misuse)
        message = known.pop("message", None) or f"{known.get('operation')}: {known.get('what')}"
        return cls(message, **known)

    @staticmethod
    def _parse(text: str) -> HoplineError:
        try:
            return HoplineError._of(loads(text))
        except Misfit:
            # Only an answer nested deeper than Python can read comes here; it is not worth losing the failure for.
            return ProtocolError("the failure itself could not be read; its answer is nested too deep", effect="unknown")


def _again(cls: type[HoplineError], message: str, fields: dict[str, Any], notes: list[str] | None) -> HoplineError:
    error = cls(message, **fields)
    for note in notes or []:
        error.add_note(note)
    return error


def moment(ms: int | None) -> datetime | None:
    """A time of the core as Python has it. What lies beyond Python's last year, or before its first, is the end of that."""
    if ms is None:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        return (datetime.max if ms > 0 else datetime.min).replace(tzinfo=UTC)


class Invalid(HoplineError, kind="invalid"):
    """Refused here, before anything was sent."""


class Refused(HoplineError, kind="refused"):
    """Refused by the service, or, if `is_refused_by_us`, by this client. The operation was not done, unless `effect` is `done`: then a read
    that follows it was refused."""


class Unavailable(HoplineError, kind="unavailable"):
    """The service could not be reached or could not do it. The operation was not done, unless `effect` is `done`: then a read that follows
    it failed."""


class InDoubt(HoplineError, kind="in_doubt"):
    """It may have been done: nobody knows yet. Its `advice` says how to find out: `resume` or `reconcile` its `record`."""


class ProtocolError(HoplineError, kind="protocol"):
    """The response was not in the API's format; it may be a gateway's error page."""


class Ended(HoplineError, kind="ended"):
    """The session of this intent is over, and nothing was bought. Choose a new intent, such as one with the date, or `forget` its
    `record`."""


class Decode(HoplineError, kind="decode"):
    """It was done, but the answer does not fit its type; `raw` keeps it."""


class Busy(HoplineError, kind="busy"):
    """Another client has it, or another change of the same session is under way or in doubt. `effect` says how far this call came."""


class Cancelled(HoplineError, kind="cancelled"):
    """It was cancelled, by its caller or because the client was closed. `effect` says whether it may have been done."""


class StoreError(HoplineError, kind="store"):
    """The store failed, or holds something that can't be read. `effect` says how far the call came."""


class Misuse(HoplineError, kind="misuse"):
    """The client was used in a way that can't work, such as after it was closed or in a forked child."""


def ask(question: str, **given: Any) -> dict[str, Any]:
    """Asks the core what needs no client, and raises its error."""
    for name, value in given.items():
        if not is_text(value):
            refuse(question, "not_text", field=name)
    members = ",".join(f"{dumps(name)}:{dumps(value)}" for name, value in given.items())
    try:
        told: dict[str, Any] = loads(_hopline.host_text(question, f"{{{members}}}"))
    except ValueError as error:
        raise HoplineError._parse(str(error)) from None
    return told


def is_text(value: Any) -> bool:
    """Whether a value can be sent: JSON holds no half of a surrogate pair."""
    return not any("\ud800" <= letter <= "\udfff" for letter in dumps(value))


def refuse(operation: str, because: str, **given: str) -> NoReturn:
    """Raises what every host refuses in the same words, before its core hears of it."""
    ask("refusal", operation=operation, because=because, **given)
    raise AssertionError(f"`{because}` is no reason to refuse anything")


def invalid(operation: str, field: str, rule: str) -> NoReturn:
    """Raises `Invalid` for an argument that never reaches the core."""
    what = f"`{field}` {rule}"
    raise Invalid(f"{operation}: {what}", operation=operation, what=what, field=field, advice="change_request")


def misuse(operation: str, what: str) -> NoReturn:
    """Raises `Misuse` for something that only this host can tell."""
    raise Misuse(f"{operation}: {what}", operation=operation, what=what)
