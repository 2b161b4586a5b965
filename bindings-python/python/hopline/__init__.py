"""Buys, runs and pays for proxy sessions. Nothing is bought twice, nothing is lost, and each error says whether the operation took
effect.

    import hopline

    with hopline.AgentClient() as agent:
        with agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="job-17", credentials=True) as session:
            print(session.session_id, session.proxy.host)
"""

from . import _types
from ._agent import AgentClient, AsyncAgentClient, Seen
from ._client import AsyncResumed, Resumed
from ._errors import (
    Busy,
    Cancelled,
    Decode,
    Effect,
    Ended,
    HoplineError,
    InDoubt,
    Invalid,
    Kind,
    Misuse,
    ProtocolError,
    Refused,
    StoreError,
    Unavailable,
)
from ._events import AsyncEvents, Events
from ._facts import Event, Saved, Verdict
from ._hopline import VERSION as __version__
from ._http import Failed, Request, Response, in_thread
from ._options import Options
from ._order import OrderReply
from ._pages import AsyncPages, End, Pages
from ._price import Quote, quote
from ._products import IpRange, is_shared, needs_project_id, parse_ip_range
from ._proxy import Settings, UseWith
from ._reseller import AsyncResellerClient, ResellerClient
from ._session import AsyncOpening, AsyncOpenSession, OpenSession, SessionReply
from ._store import FolderStore, LeasedStore, Lost, OverCap, OwnedElsewhere, Store, StoredName, StoredPage
from ._telemetry import session_event
from ._types import *  # noqa: F403
from ._value import Reply, Until, Value
from ._values import UNSET, Method, Phase, Safety, Secret, Unset

__all__ = [
    "UNSET",
    "AgentClient",
    "AsyncAgentClient",
    "AsyncEvents",
    "AsyncOpenSession",
    "AsyncOpening",
    "AsyncPages",
    "AsyncResellerClient",
    "AsyncResumed",
    "Busy",
    "Cancelled",
    "Decode",
    "Effect",
    "End",
    "Ended",
    "Event",
    "Events",
    "Failed",
    "FolderStore",
    "HoplineError",
    "InDoubt",
    "Invalid",
    "IpRange",
    "Kind",
    "LeasedStore",
    "Lost",
    "Method",
    "Misuse",
    "OpenSession",
    "Options",
    "OrderReply",
    "OverCap",
    "OwnedElsewhere",
    "Pages",
    "Phase",
    "ProtocolError",
    "Quote",
    "Refused",
    "Reply",
    "Request",
    "ResellerClient",
    "Response",
    "Resumed",
    "Safety",
    "Saved",
    "Secret",
    "Seen",
    "SessionReply",
    "Settings",
    "Store",
    "StoreError",
    "StoredName",
    "StoredPage",
    "Unavailable",
    "Unset",
    "Until",
    "UseWith",
    "Value",
    "Verdict",
    "in_thread",
    "is_shared",
    "needs_project_id",
    "parse_ip_range",
    "quote",
    "session_event",
]
__all__ += _types.__all__
