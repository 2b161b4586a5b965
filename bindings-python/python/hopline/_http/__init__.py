"""HTTP, by whatever client a program has. Repeats and redirects are the core's to decide, so each client's own are off."""

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
