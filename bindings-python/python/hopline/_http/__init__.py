"""HTTP, by whatever client a program has. Repeats and redirects are the core's to decide, so each client's own are off."""

from ._base import Failed, Request, Response
from ._choose import choose, choose_async

__all__ = ["Failed", "Request", "Response", "choose", "choose_async"]
