"""Buys, runs and pays for proxy sessions. Nothing is bought twice, nothing is lost, and each error says whether the operation took
effect.

    import hopline

    with hopline.AgentClient() as agent:
        with agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="job-17") as session:
            print(session.session_id, session.proxy.host)
"""

from typing import TYPE_CHECKING, Any

from . import _entry, _told, _types  # noqa: F401
from ._events import AsyncEvents, Events
from ._hopline import VERSION as __version__
from ._http import Failed, Request, Response
from ._observing import Verdict
from ._order import OrderReply
from ._proxy import Settings, UseWith
from ._seen import Seen, SeenWord
from ._session import SessionReply
from ._store import FolderStore, LeasedStore, Lost, OverCap, OwnedElsewhere, Store, StoredName, StoredPage, StoreNotOpened
from ._sync_agent import AgentClient
from ._sync_client import Resumed
from ._sync_pages import Pages
from ._sync_pool import Lease, Pool
from ._sync_session import OpenSession
from ._told import *  # noqa: F403
from ._types import *  # noqa: F403
from ._value import Cheapest, Reply, Until, Value, cheapest
from ._values import UNSET, Secret, Unset

if TYPE_CHECKING:
    from ._async_agent import AsyncAgentClient
    from ._async_client import AsyncResumed
    from ._async_pages import AsyncPages
    from ._async_pool import AsyncAcquiring, AsyncLease, AsyncPool, AsyncPoolOpening
    from ._async_reseller import AsyncResellerClient
    from ._async_session import AsyncOpening, AsyncOpenSession
    from ._http._thread import in_thread
    from ._port import Loopback
    from ._postgres import PostgresStore
    from ._price import quote
    from ._products import IpRange, is_shared, needs_project_id, parse_ip_range
    from ._sync_reseller import ResellerClient
    from ._telemetry import session_event

__all__ = [
    "UNSET",
    "AgentClient",
    "AsyncAcquiring",
    "AsyncAgentClient",
    "AsyncEvents",
    "AsyncLease",
    "AsyncOpenSession",
    "AsyncOpening",
    "AsyncPages",
    "AsyncPool",
    "AsyncPoolOpening",
    "AsyncResellerClient",
    "AsyncResumed",
    "Cheapest",
    "Events",
    "Failed",
    "FolderStore",
    "IpRange",
    "Lease",
    "LeasedStore",
    "Loopback",
    "Lost",
    "OpenSession",
    "OrderReply",
    "OverCap",
    "OwnedElsewhere",
    "Pages",
    "Pool",
    "PostgresStore",
    "Reply",
    "Request",
    "ResellerClient",
    "Response",
    "Resumed",
    "Secret",
    "Seen",
    "SeenWord",
    "SessionReply",
    "Settings",
    "Store",
    "StoreNotOpened",
    "StoredName",
    "StoredPage",
    "Unset",
    "Until",
    "UseWith",
    "Value",
    "Verdict",
    "cheapest",
    "in_thread",
    "is_shared",
    "needs_project_id",
    "parse_ip_range",
    "quote",
    "session_event",
]
__all__ += _told.__all__
__all__ += _types.__all__

_LATER = {
    "AsyncAcquiring": "_async_pool",
    "AsyncAgentClient": "_async_agent",
    "AsyncLease": "_async_pool",
    "AsyncOpenSession": "_async_session",
    "AsyncOpening": "_async_session",
    "AsyncPages": "_async_pages",
    "AsyncPool": "_async_pool",
    "AsyncPoolOpening": "_async_pool",
    "AsyncResellerClient": "_async_reseller",
    "AsyncResumed": "_async_client",
    "IpRange": "_products",
    "Loopback": "_port",
    "PostgresStore": "_postgres",
    "ResellerClient": "_sync_reseller",
    "in_thread": "_http._thread",
    "is_shared": "_products",
    "needs_project_id": "_products",
    "parse_ip_range": "_products",
    "quote": "_price",
    "session_event": "_telemetry",
}


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def __getattr__(name: str) -> Any:
    """Names that only some programs need are imported on first use."""
    if (module := _LATER.get(name)) is None:
        raise AttributeError(f"module `hopline` has no attribute `{name}`")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f".{module}", __name__), name)
    return found
