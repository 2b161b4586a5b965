"""HTTP, by whatever client a program has. Repeats and redirects are the core's to decide, so each client's own are off."""

from ._base import AsyncTransport, Failed, Request, Response, Transport
from ._choose import own, transport_for_tasks, transport_for_threads

__all__ = [
    "AsyncTransport",
    "Failed",
    "Request",
    "Response",
    "Transport",
    "own",
    "transport_for_tasks",
    "transport_for_threads",
]
