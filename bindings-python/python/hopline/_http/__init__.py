"""HTTP, by whatever client a program has. Repeats and redirects are the core's to decide, so each client's own are off."""

from ._base import AsyncTransport, Failed, Request, Response, Transport
from ._choose import choose, choose_async, own
from ._thread import in_thread

__all__ = ["AsyncTransport", "Failed", "Request", "Response", "Transport", "choose", "choose_async", "in_thread", "own"]
