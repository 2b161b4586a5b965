"""Reports about a session. The core decides what an event may contain."""

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
    """Builds an event for `report_session_event` from a request through a session.

    The service does not document which members it reads, so these names are Hopline's own; any other object may be reported as well.

    Args:
        status: The HTTP status of the target's answer, 100 to 599.
        seen: The outcome if there was no usable answer: a captcha, a timeout, or another block.
        latency_ms: Milliseconds that the request took, at least 0.
        bytes: The transferred bytes, at least 0.
        target: The target's host name. Of a URL only the host is kept, since the rest may hold secrets.
        more: Further members, by names of your own.
    """
    facts = {"status": status, "seen": seen, "latency_ms": latency_ms, "bytes": bytes, "target": target}
    return ask("session_event", facts=facts, more=more)
