"""aiohttp: a session of the caller's own."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, before_first_byte, sent_headers
from ._words import home, unsent, way_of_its_own

if TYPE_CHECKING:
    import aiohttp


_WAYS = ("get", "post", "put", "patch", "delete")
_CACHES = ("aiohttp_client_cache",)
_PASSED_BY = ("aiohttp", "opentelemetry", *_CACHES)


_numbers = count()


class _Own(str):
    """A text that equals no other one."""

    def __init__(self, text: str) -> None:
        self._number = next(_numbers)

    def __hash__(self) -> int:
        return hash(self._number)


def async_transport(session: "aiohttp.ClientSession") -> Callable[[Request], Awaitable[Response]]:
    """Sends through the session, without redirects and without its second send of a dropped PUT, DELETE or GET."""
    import asyncio

    import aiohttp

    if tuple(int(part) for part in aiohttp.__version__.split(".")[:2]) < (3, 12):
        misuse("client", f"aiohttp {aiohttp.__version__} repeats requests by itself; install aiohttp 3.12 or later, which can be told not to")

    if (why_not := way_of_its_own(session, _WAYS, _PASSED_BY)) is not None:
        misuse("client", why_not)

    async def send(request: Request) -> Response:
        why = "the aiohttp.ClientSession is closed" if session.closed else way_of_its_own(session, _WAYS, _PASSED_BY)
        if getattr(session, "_loop", None) not in (None, asyncio.get_running_loop()):
            why = "the aiohttp.ClientSession belongs to another event loop"
        if why is not None:
            raise Failed("other", "never", f"nothing was sent, since {why}")
        innermost, own = _Innermost(), getattr(session, "_middlewares", ())
        try:
            async with await _past_caches(session)(
                request.method,
                request.url,
                data=request.body,
                headers=sent_headers(request),
                allow_redirects=False,
                raise_for_status=False,
                # A request that waits for a connection until then was not sent.
                timeout=aiohttp.ClientTimeout(total=request.timeout, connect=0.95 * request.timeout, ceil_threshold=2 * request.timeout),
                # Innermost, so that no other middleware repeats either.
                middlewares=(*own, innermost),
            ) as response:
                body, truncated = await _read(response, request.max_body)
                return Response(status=response.status, headers=list(response.headers.items()), body=body, truncated=truncated)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            # A middleware of the caller's may have raised it about another host, after the answer came.
            raise before_first_byte(error) if innermost.did_not_connect else Failed("closed", "maybe") from None
        except TimeoutError:
            raise Failed("timeout", "maybe") from None
        except aiohttp.ClientError:
            raise Failed("closed", "maybe") from None
        except Exception as error:
            if isinstance(error, Failed) or innermost.sends or own or home(session._request) != "aiohttp":
                raise
            raise unsent(error, request) from None

    return send


def _past_caches(session: "aiohttp.ClientSession") -> Any:
    """The method of a session that sends. A cache would answer with what was true once, and keep the secrets of answers."""
    import aiohttp

    if home(session._request) in _CACHES:
        return partial(aiohttp.ClientSession._request, session)
    return session.request


class _Innermost:
    """The last middleware, behind which a connection is chosen and the request is sent."""

    def __init__(self) -> None:
        self.sends = 0
        self.did_not_connect = False

    async def __call__(self, request: "aiohttp.ClientRequest", handler: "aiohttp.ClientHandlerType") -> "aiohttp.ClientResponse":
        import aiohttp
        from multidict import CIMultiDict

        self.sends += 1
        if self.sends > 1:
            raise Failed("closed", "maybe")
        # Each request has a connection of its own: data behind an answer belongs to no request. Connections are kept by their settings;
        # this setting reaches only a proxy, and changes nothing for it.
        told = CIMultiDict(request.proxy_headers or ())
        told["proxy-connection"] = _Own("keep-alive")
        request.proxy_headers = told
        send = request.send

        async def send_last(connection: Any) -> "aiohttp.ClientResponse":
            connection.protocol.force_close()
            return await send(connection)

        request.send = send_last  # type: ignore[assignment,method-assign]
        try:
            return await handler(request)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            self.did_not_connect = True
            raise


async def _read(response: "aiohttp.ClientResponse", limit: int) -> tuple[bytes, bool]:
    import aiohttp

    body = bytearray()
    try:
        async for chunk in response.content.iter_chunked(1 << 16):
            body += chunk
            if len(body) > limit:
                return bytes(body[:limit]), True
    except (aiohttp.ClientError, OSError):
        return bytes(body), True
    return bytes(body), False
