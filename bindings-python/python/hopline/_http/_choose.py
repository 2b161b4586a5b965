"""Chooses the transport for the caller's `http`."""

from __future__ import annotations

from collections.abc import MutableSet
from typing import Any, cast

from .._errors import misuse
from ._base import AsyncTransport, Request, Response, Transport


def transport_for_threads(http: Any) -> Transport:
    """The transport of a blocking client, which sends in the thread that waits. Other HTTP clients can't always be broken off, so those get
    threads.
    """
    send = _blocking(http)
    if _library(http) not in ("requests.Session", "httpx.Client", "urllib3.PoolManager"):
        return send
    from ._thread import in_thread

    return in_thread(send)


def _blocking(http: Any) -> Transport:
    match _library(http):
        case "none":
            from ._stdlib import Connections

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
    if _is_for_tasks(http):
        misuse("client", f"`http` can't be a `{type(http).__name__}` that is awaited, which clients for tasks take; {_GIVE}")
    _check_callable(http)
    return cast(Transport, http)


def transport_for_tasks(http: Any) -> AsyncTransport:
    """The transport of an async client. A blocking HTTP client gets a thread for each request."""
    from ._thread import InTask

    match _library(http):
        case "httpx.AsyncClient":
            from . import _httpx

            return _httpx.async_transport(http)
        case "aiohttp.ClientSession":
            from . import _aiohttp

            return _aiohttp.async_transport(http)
        case "none" | "requests.Session" | "httpx.Client" | "urllib3.PoolManager":
            return InTask(_blocking(http))
    _check_callable(http)
    if _is_for_tasks(http):
        return cast(AsyncTransport, http)
    from inspect import isawaitable

    # The callable is unknown before its call, and may block.
    in_threads = InTask(http)

    async def send(request: Request) -> Response:
        answer: Any = await in_threads(request)
        return cast(Response, await answer if isawaitable(answer) else answer)

    return send


_GIVE = "give it an HTTP client, or a callable that takes a hopline.Request and returns a hopline.Response"


def _check_callable(http: Any) -> None:
    """Refuses an object that can't be called with a request, before a purchase finds that out."""
    from inspect import signature

    if isinstance(http, type):
        misuse("client", f"`http` is the class `{http.__name__}` itself; give it an object of it")
    if not callable(http):
        misuse("client", f"`http` can't be a `{type(http).__name__}`; {_GIVE}")
    try:
        signature(http).bind(None)
    except TypeError:
        misuse("client", f"`http` can't be called with a request alone; {_GIVE}")
    except ValueError:  # no signature
        return


def _is_for_tasks(http: Any) -> bool:
    """Returns true for a coroutine function, or an object that is called as one."""
    from inspect import iscoroutinefunction

    return iscoroutinefunction(http) or iscoroutinefunction(getattr(http, "__call__", None))


def _library(http: Any) -> str:
    """The HTTP client that the object is, or is made from, without importing any."""
    known = ("requests.Session", "httpx.Client", "httpx.AsyncClient", "urllib3.PoolManager", "aiohttp.ClientSession")
    if http is None:
        return "none"
    names = [f"{cls.__module__.split('.')[0]}.{cls.__name__}" for cls in type(http).__mro__]
    return next((name for name in names if name in known), "other")


def own(send: Transport | AsyncTransport, closing: MutableSet[Any]) -> None:
    """Adds the parts that a transport has to close, if it is Hopline's own. The caller closes its own client."""
    from ._stdlib import Connections
    from ._thread import InTask

    if isinstance(send, InTask):
        own(send.blocking, closing)
    elif isinstance(send, Connections):
        closing.add(send)
