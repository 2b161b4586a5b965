"""Which transport belongs to what a caller gave as `http`."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, MutableSet
from typing import Any, cast

from .._errors import misuse
from ._base import Failed, Request, Response, Transport
from ._stdlib import Connections

AsyncTransport = Callable[[Request], Awaitable[Response]]


def choose(http: Any) -> Transport:
    """The transport of a blocking client."""
    match _library(http):
        case "none":
            return Connections()
        case "requests.Session":
            from . import _requests

            return _requests.transport(http)
        case "httpx.Client":
            from . import _httpx

            return _httpx.transport(http)
        case "urllib3.PoolManager":
            from . import _urllib3

            return _urllib3.transport(http)
        case "httpx.AsyncClient" | "aiohttp.ClientSession" as name:
            misuse("client", f"`http` is an {name}, which clients for tasks take; give this client a blocking one")
    if inspect.iscoroutinefunction(http) or not callable(http):
        misuse("client", f"`http` can't be a `{type(http).__name__}`; give it an HTTP client or a callable that takes a hopline.Request")
    return cast(Transport, http)


def choose_async(http: Any) -> AsyncTransport:
    """The transport of an async client. A blocking HTTP client gets a thread for each request."""
    match _library(http):
        case "httpx.AsyncClient":
            from . import _httpx

            return _httpx.async_transport(http)
        case "aiohttp.ClientSession":
            from . import _aiohttp

            return _aiohttp.async_transport(http)
        case "none" | "requests.Session" | "httpx.Client" | "urllib3.PoolManager":
            return Threaded(choose(http))
    if not callable(http):
        misuse("client", f"`http` can't be a `{type(http).__name__}`; give it an HTTP client or a callable that takes a hopline.Request")
    if inspect.iscoroutinefunction(http) or inspect.iscoroutinefunction(getattr(http, "__call__", None)):
        return cast(AsyncTransport, http)
    # What it does is not known before it is called, and it may block.
    in_threads = Threaded(http)

    async def send(request: Request) -> Response:
        answer: Any = await in_threads(request)
        return cast(Response, await answer if inspect.isawaitable(answer) else answer)

    return send


def _library(http: Any) -> str:
    """The HTTP client that it is, or is made from, without importing any."""
    known = ("requests.Session", "httpx.Client", "httpx.AsyncClient", "urllib3.PoolManager", "aiohttp.ClientSession")
    if http is None:
        return "none"
    names = [f"{cls.__module__.split('.')[0]}.{cls.__name__}" for cls in type(http).__mro__]
    return next((name for name in names if name in known), "other")


def in_thread(send: Transport, request: Request, done: Callable[[Response | BaseException], None]) -> None:
    """Sends in a thread of its own, so that whoever waits can give up on time whatever the HTTP client does."""
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done(context.run(send, request))
        except BaseException as error:  # it belongs to whoever waits
            done(error)

    threading.Thread(target=work, name="hopline-send", daemon=True).start()


class Threaded:
    """A blocking transport as event loops want it: a thread for each request."""

    def __init__(self, send: Transport) -> None:
        self.blocking = send

    async def __call__(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response] = loop.create_future()

        def settle(result: Response | BaseException) -> None:
            if answer.done():
                return
            if isinstance(result, BaseException):
                answer.set_exception(result if isinstance(result, Exception) else Failed("aborted", "maybe"))
            else:
                answer.set_result(result)

        def done(result: Response | BaseException) -> None:
            try:
                loop.call_soon_threadsafe(settle, result)
            except RuntimeError:  # the loop is closed, and nobody waits
                return

        try:
            in_thread(self.blocking, request, done)
        except RuntimeError:  # there can be no more threads
            raise Failed("other", "never") from None
        return await answer


def own(send: Transport | AsyncTransport, closing: MutableSet[Any]) -> None:
    """Adds what a transport has to close, if it is Hopline's own. What the caller gave is the caller's to close."""
    if isinstance(send, Threaded):
        own(send.blocking, closing)
    elif isinstance(send, Connections):
        closing.add(send)
