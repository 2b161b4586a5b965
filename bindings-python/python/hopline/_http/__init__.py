"""HTTP, by whatever client a program has. Repeats and redirects are the core's to decide, so each client's own are off."""

from ._base import Failed, Request, Response, Transport
from ._choose import AsyncTransport, choose, choose_async, own

__all__ = ["AsyncTransport", "Failed", "Request", "Response", "Transport", "choose", "choose_async", "own"]
