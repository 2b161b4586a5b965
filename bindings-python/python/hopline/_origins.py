"""The lease or session that a proxy is of, which the port of the proxy ends with."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ._errors import misuse

if TYPE_CHECKING:
    from ._port import Loopback
    from ._session import Known
    from ._types import Proxy


class LeaseOrigin:
    """A lease. Its proxy keeps it from being given back no more than any other part of it."""

    __slots__ = ("_lease",)

    def __init__(self, lease: Any) -> None:
        self._lease = weakref.ref(lease)

    def loopback(self, proxy: Proxy, port: int) -> Loopback:
        """Opens a port that ends with the lease."""
        from ._port import of_lease

        lease = self._lease()
        if lease is None or not lease._engine.leases.is_out(lease._command):
            misuse("on_loopback", "the lease was given back; acquire another one, and keep it as long as its port")
        return of_lease(lease, port)


class SessionOrigin:
    """A session that was opened. Its port follows it from exit to exit."""

    __slots__ = ("_known", "_session_id")

    def __init__(self, session_id: str, known: Known) -> None:
        self._session_id, self._known = session_id, known

    def loopback(self, proxy: Proxy, port: int) -> Loopback:
        """Opens a port that ends when it is closed."""
        from ._port import of_session

        return of_session(self._session_id, self._known, port)
