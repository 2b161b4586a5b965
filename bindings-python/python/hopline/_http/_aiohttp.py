"""aiohttp: a session of the caller's own."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .._errors import misuse
from ._base import Failed, Request, Response, before_first_byte, sent_headers

if TYPE_CHECKING:
    import aiohttp


def async_transport(session: "aiohttp.ClientSession") -> Callable[[Request], Awaitable[Response]]:
    """Sends through the session, without redirects and without its second send of a dropped PUT, DELETE or GET."""
    import aiohttp

    if tuple(int(part) for part in aiohttp.__version__.split(".")[:2]) < (3, 12):
        misuse("client", f"aiohttp {aiohttp.__version__} repeats requests by itself; install aiohttp 3.12 or later, which can be told not to")

    async def send(request: Request) -> Response:
        own = getattr(session, "_middlewares", ())
        try:
            async with session.request(
                request.method,
                request.url,
                data=request.body,
                headers=sent_headers(request),
                allow_redirects=False,
                raise_for_status=False,
                timeout=aiohttp.ClientTimeout(total=request.timeout),
                # Innermost, so that no other middleware repeats either.
                middlewares=(*own, _once()),
            ) as response:
                body, truncated = await _read(response, request.max_body)
                return Response(status=response.status, headers=list(response.headers.items()), body=body, truncated=truncated)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise before_first_byte(error) from None
        except TimeoutError:
            raise Failed("timeout", "maybe") from None
        except aiohttp.ClientError:
            raise Failed("closed", "maybe") from None

    return send


def _once() -> "aiohttp.ClientMiddlewareType":
    sends = 0

    async def middleware(request: "aiohttp.ClientRequest", handler: "aiohttp.ClientHandlerType") -> "aiohttp.ClientResponse":
        nonlocal sends
        sends += 1
        if sends > 1:
            raise Failed("closed", "maybe")
        return await handler(request)

    return middleware


async def _read(response: "aiohttp.ClientResponse", limit: int) -> tuple[bytes, bool]:
    import aiohttp

    body = bytearray()
    try:
        async for chunk in response.content.iter_chunked(1 << 16):
            body += chunk
            if len(body) > limit:
                response.close()
                return bytes(body[:limit]), True
    except (aiohttp.ClientError, OSError):
        return bytes(body), True
    return bytes(body), False
