"""What is told about a session."""

from typing import Any, Literal

from ._errors import invalid
from ._values import UNSET, Unset


def session_event(
    *,
    status: int | Unset = UNSET,
    seen: Literal["captcha", "timeout", "block"] | Unset = UNSET,
    latency_ms: int | Unset = UNSET,
    bytes: int | Unset = UNSET,
    target: str | Unset = UNSET,
    **more: Any,
) -> dict[str, Any]:
    """Builds an event for `report_session_event` of what a request through a session met.

    The service does not show which members it reads, so these names are Hopline's own; any other object may be reported
    as well.

    Args:
        status: The HTTP status that the target answered with, 100 to 599.
        seen: What came in place of an answer: a captcha, nothing in time, or another block.
        latency_ms: Milliseconds that the request took, at least 0.
        bytes: How much was transferred, at least 0.
        target: The host name of the target, and no more of its URL: the rest may hold secrets.
        more: Whatever else is worth telling, by names of your own.
    """
    if isinstance(target, str) and (not target or any(letter in target for letter in "/?#@\\ ")):
        invalid("report_session_event", "target", "must be a host name, and no more of a URL")
    for name, number, least, most in (
        ("status", status, 100, 599),
        ("latency_ms", latency_ms, 0, None),
        ("bytes", bytes, 0, None),
    ):
        if number is UNSET:
            continue
        if not isinstance(number, int) or isinstance(number, bool) or number < least or (most is not None and number > most):
            invalid("report_session_event", name, f"must be a whole number of at least {least}" + (f" and at most {most}" if most else ""))
    if seen is not UNSET and seen not in ("captcha", "timeout", "block"):
        invalid("report_session_event", "seen", "must be one of captcha, timeout, block")
    told = {"status": status, "seen": seen, "latency_ms": latency_ms, "bytes": bytes, "target": target, **more}
    return {name: value for name, value in told.items() if value is not UNSET}
