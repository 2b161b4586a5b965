"""A port on this machine that leads through sessions, for programs that can't log in to a proxy. Imported by its first use, and asyncio with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._exits import Exit, LeaseExit, OneExit, SessionExit
from ._loopback import Loopback

if TYPE_CHECKING:
    from .._session import Known
    from .._types import Proxy

__all__ = ["Loopback", "of_lease", "of_proxy", "of_session"]


def of_lease(lease: Any, number: int) -> Loopback:
    """Opens the port of a lease."""
    leases, command = lease._engine.leases, lease._command
    one = LeaseExit(lease.proxy, lease.session_id, lease.generation, leases, command)
    exits = OneExit(lambda: one if one.is_valid else None)
    return Loopback(exits, number, lease, lambda end: leases.at_end(command, end))


def of_session(session_id: str, known: Known, number: int) -> Loopback:
    """Opens the port of a session that was opened."""

    def current() -> Exit | None:
        proxy, generation = known.session.proxy, known.generation
        return None if proxy is None or known.phase != "ready" else SessionExit(proxy, session_id, generation, known)

    current()  # a session without credentials is refused here, and not by the port
    return Loopback(OneExit(current), number, None, None)


def of_proxy(proxy: Proxy, number: int) -> Loopback:
    """Opens the port of a proxy from elsewhere."""
    one = Exit(proxy)
    return Loopback(OneExit(lambda: one), number, None, None)
