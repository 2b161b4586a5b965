"""A session at the end of its wait, and a client's state of one that it has opened."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ._told import Phase
from ._types import Proxy, Session
from ._value import Value


class SessionReply(Value):
    """A session at the end of its wait: usable, over, or (`pending`, `unknown`) not yet, at the deadline."""

    session_id: str
    """The session's id: the handle for all further operations."""
    phase: Phase
    """The phase of the session."""
    session: Session
    """The last read of the session."""
    charged_usd: Decimal | None = None
    """The charge of its purchase in USD, where the service stated it."""

    @property
    def raw(self) -> Any:
        """The whole `data` of that read. The value may hold secrets."""
        return self.session.raw

    @property
    def proxy(self) -> Proxy:
        """The proxy; empty as long as the session is not usable."""
        return self.session.proxy or Proxy()


def plain(session_id: str, phase: Phase, session: Session, charged_usd: Decimal | None = None) -> SessionReply:
    """Makes such a session from its members."""
    return SessionReply(session_id=session_id, phase=phase, session=session, charged_usd=charged_usd)


class Known:
    """The newest state of a session, for all handles of it."""

    __slots__ = ("__weakref__", "_rotated_by", "generation", "phase", "session")

    def __init__(self, session: Session, phase: Phase) -> None:
        self.session, self.phase, self.generation = session, phase, 0
        self._rotated_by: str | None = None

    def take_in(self, found: Session, operation: str) -> None:
        """Takes the session from the answer of a call. Several callers may have waited for one rotation."""
        is_rotated = operation in ("rotate_session", "observe") and (found.request_id is None or found.request_id != self._rotated_by)
        if is_rotated:
            self._rotated_by = found.request_id
        before, now = self.session.proxy, found.proxy
        if is_rotated or _differ(before, now):
            self.generation += 1
        elif before is not None and now is not None:
            # Members that this read did not request keep their values.
            found = found.__replace__(proxy=before.__replace__(**{name: value for name, value in now._members().items() if value is not None}))
        elif now is None:
            found = found.__replace__(proxy=before)
        self.session, self.phase = found, found.phase or self.phase


def _differ(before: Proxy | None, now: Proxy | None) -> bool:
    if before is None or now is None:
        return False
    pairs = ((value, getattr(now, name)) for name, value in before._members().items())
    return any(one != other for one, other in pairs if one is not None and other is not None)
