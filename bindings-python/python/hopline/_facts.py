"""What a client tells about itself: events, what its store holds, advice on a session."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from ._errors import HoplineError, moment
from ._types import Session
from ._value import Value
from ._values import Phase, loads


class Event(Value):
    """Progress of a command, for people and metrics. Nothing depends on it."""

    event: (
        Literal[
            "repeating", "asking_time", "accepted", "status", "ordered", "order_status", "differing", "priced", "watched", "in_doubt",
            "store_failed",
        ]
        | str
    )  # fmt: skip
    """What happened: it will be sent again, the service is asked for its time, a purchase was accepted, a session's status was
    read, an order was accepted, its status was read, an answer spells a member in two ways with two values, the price of a
    purchase was read, what a read is repeated for has changed, it ended in doubt, or a record that nothing waits for could
    not be saved."""
    operation: str
    """Which operation."""
    intent: str | None = None
    """Your own name for it."""
    attempts: int | None = None
    """Of `repeating`: sends so far."""
    delay: float | None = None
    """Of `repeating`: seconds until the next."""
    because: HoplineError | None = None
    """Of `repeating`: what came of the last send."""
    session_id: str | None = None
    """Of `accepted` and `status`: the session."""
    estimated_charge_usd: Decimal | None = None
    """Of `accepted`: USD."""
    order_no: str | None = None
    """Of `ordered` and `order_status`: the order's number."""
    status: str | None = None
    """Of `status` and `order_status`: as it came."""
    phase: Phase | None = None
    """Of `status` and `order_status`: what it means for waiting."""
    members: tuple[str, ...] = ()
    """Of `differing`: which, in the spelling that counts."""
    unit_price: Decimal | None = None
    """Of `priced`: USD for one unit."""
    value: str | None = None
    """Of `watched`: what is there now, where it is a word or a number."""
    record: str | None = None
    """Of `in_doubt` and `store_failed`: the record."""

    @staticmethod
    def _parse(text: str) -> "Event":
        told: dict[str, Any] = loads(text)
        told.pop("command", None)
        charge, price = (told.pop(name, None) for name in ("estimated_charge_usd", "unit_price"))
        members = tuple(told.pop("members", ()))
        delay, because = (told.pop(name, None) for name in ("delay_ms", "because"))
        return Event(
            **{name: value for name, value in told.items() if name in Event._fields},
            members=members,
            estimated_charge_usd=None if charge is None else Decimal(charge),
            unit_price=None if price is None else Decimal(price),
            delay=None if delay is None else delay / 1000,
            because=None if because is None else HoplineError._of(because),
        )


class Saved(Value):
    """Something that the store holds: a write under way or in doubt, a session, an order, a write that was accepted."""

    record: str
    """Its record as it is now, to `resume`, `reconcile`, `settle` or `forget` it by."""
    operation: str
    """The operation that made it."""
    whose: Literal["mine", "free", "other"]
    """Who has it: this client, nobody, or another living client."""
    holds: Literal["under_way", "in_doubt", "in_doubt_for_good", "session", "order", "accepted", "refused"] | str
    """What it stands for. `under_way` is at work in this client or another. `in_doubt_for_good` can't be sent again and can only be
    settled. `accepted` is a write whose answer `resume` gives again, if its session is not over. `refused` can't be used by this client,
    for the `reason`; nothing starts under its intent until somebody forgets it."""
    reason: Literal["damaged", "other_version", "other_api", "other_account"] | str | None = None
    """Of `refused`: why."""
    intent: str | None = None
    """Your own name for it."""
    session_id: str | None = None
    """Its session."""
    order_no: str | None = None
    """Its order's number."""
    status: str | None = None
    """The status of the session or the order, when it was last read."""
    in_doubt_since: datetime | None = None
    """Since when it is in doubt."""
    settle_from: datetime | None = None
    """Of a doubt: from when on it can be settled as not happened without `early`. A request may be under way until then."""

    @staticmethod
    def _of(told: dict[str, Any]) -> "Saved":
        since, settle_from = (moment(told.pop(name, None)) for name in ("in_doubt_since", "settle_from"))
        known = {name: value for name, value in told.items() if name in Saved._fields}
        return Saved(**known, in_doubt_since=since, settle_from=settle_from)


class Verdict(Value):
    """What was seen of a session comes to this. To rotate is your decision, unless it was made by `auto_rotate`."""

    verdict: Literal["keep", "rotate", "rotated", "unsure"]
    """What to do: keep it, rotate it with `reason`, use it as it is now that it was rotated, or wait and see."""
    reason: Literal["manual", "scheduled", "http_403", "http_429", "captcha", "timeout", "block"] | None = None
    """Of `rotate`: the reason to give. Of `rotated`: the reason that was given."""
    session: Session | None = None
    """Of `rotated`: the session with its new exit, as `rotate_session` answers it."""
    why: str | None = None
    """Of `unsure`: why."""
