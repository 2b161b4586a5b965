"""Buys, runs and pays for proxy sessions. Nothing is bought twice, nothing is lost, and an error says what money did.

    import hopline

    with hopline.AgentClient() as agent:
        with agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="job-17", credentials=True) as session:
            print(session.session_id, session.proxy.host)
"""

from . import _types
from ._clients import AgentClient, AsyncAgentClient, Resumed, Seen
from ._errors import (
    Busy,
    Cancelled,
    Decode,
    Effect,
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
from ._facts import Event, Phase, Rejected, Saved, Verdict
from ._http import Failed, Request, Response
from ._options import Options
from ._session import AsyncOpening, OpenSession, SessionReply
from ._store import FolderStore, MemoryStore, Shelf, Store
from ._types import *  # noqa: F403
from ._values import UNSET, Reply, Secret, Unset, Value

__all__ = [
    "UNSET",
    "AgentClient",
    "AsyncAgentClient",
    "AsyncOpening",
    "Busy",
    "Cancelled",
    "Decode",
    "Effect",
    "Event",
    "Failed",
    "FolderStore",
    "HoplineError",
    "InDoubt",
    "Invalid",
    "Kind",
    "MemoryStore",
    "Misuse",
    "OpenSession",
    "Options",
    "Phase",
    "ProtocolError",
    "Refused",
    "Rejected",
    "Reply",
    "Request",
    "Response",
    "Resumed",
    "Saved",
    "Secret",
    "Seen",
    "SessionReply",
    "Shelf",
    "Store",
    "StoreError",
    "Unavailable",
    "Unset",
    "Value",
    "Verdict",
]
__all__ += _types.__all__
