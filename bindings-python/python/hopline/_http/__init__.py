"""HTTP, by the HTTP client of a program. Repeats and redirects are decided by the core, so each client's own are off."""

from ._base import AsyncTransport, Failed, Request, Response, Transport, inflated
from ._choose import own, transport_for_tasks, transport_for_threads
from ._words import words_of

__all__ = [
    "AsyncTransport",
    "Failed",
    "Request",
    "Response",
    "Transport",
    "inflated",
    "own",
    "transport_for_tasks",
    "transport_for_threads",
    "words_of",
]
