"""What is told about a session. What an event may say, the core decides."""

from __future__ import annotations

from typing import Any, Literal

from ._errors import ask
from ._values import UNSET, Unset


def session_event(
    *,
    status: int | Unset = UNSET,
    seen: Literal["captcha", "timeout", "block"] | Unset = UNSET,
    latency_ms: float | Unset = UNSET,
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
        target: The target's host name. Of a URL only that is kept, since the rest may hold secrets.
        more: Whatever else is worth telling, by names of your own.
    """
    facts = {"status": status, "seen": seen, "latency_ms": latency_ms, "bytes": bytes, "target": target}
    return ask("session_event", facts=facts, more=more)
