"""A session as waiting for it ended."""

from __future__ import annotations

from typing import Any

from ._told import Phase
from ._types import Proxy, Session
from ._value import Value


class SessionReply(Value):
    """How a session is, when waiting for it ended: usable, over, or (`pending`, `unknown`) not yet, at the deadline."""

    session_id: str
    """Its id: the handle for everything that comes after."""
    phase: Phase
    """Where it is."""
    session: Session
    """The last read of it."""

    @property
    def raw(self) -> Any:
        """The whole `data` of that read. It may hold secrets."""
        return self.session.raw

    @property
    def proxy(self) -> Proxy:
        """How to reach it; empty as long as it is not usable."""
        return self.session.proxy or Proxy()


def plain(session_id: str, phase: Phase, session: Session) -> SessionReply:
    """Such a session, of its members."""
    return SessionReply(session_id=session_id, phase=phase, session=session)
