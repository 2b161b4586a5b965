"""httpx: a client of the caller's own, blocking or async."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, break_off, sent_headers

if TYPE_CHECKING:
    import httpx


def _arguments(request: Request) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "content": request.body,
        "headers": sent_headers(request),
        "timeout": request.timeout,
        "follow_redirects": False,
        # An authentication flow could send a request a second time.
        "auth": None,
    }


def _failure(error: Exception) -> Failed:
    import httpx

    match error:
        # Raised before a connection is there, or while one is waited for.
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            return Failed("timeout", "never")
        case httpx.ConnectError():
            return before_first_byte(error)
        case httpx.TimeoutException():
            return Failed("timeout", "maybe")
        case _:
            return Failed("closed", "maybe")


def transport(client: "httpx.Client") -> Transport:
    """Sends through the client, without redirects and its authentication."""
    import httpx

    def send(request: Request) -> Response:
        try:
            with client.stream(**_arguments(request)) as response:
                stream = response.extensions["network_stream"]
                request.on_abort(lambda: break_off(stream.get_extra_info("socket")))
                body, truncated = body_of(response.iter_raw(), request.max_body)
                return Response(status=response.status_code, headers=response.headers.items(), body=body, truncated=truncated)
        except httpx.TransportError as error:
            raise _failure(error) from None

    return send


def async_transport(client: "httpx.AsyncClient") -> Callable[[Request], Awaitable[Response]]:
    """The same for an async client."""
    import httpx

    async def send(request: Request) -> Response:
        try:
            async with client.stream(**_arguments(request)) as response:
                body, truncated = await _read(response, request.max_body)
                return Response(status=response.status_code, headers=response.headers.items(), body=body, truncated=truncated)
        except httpx.TransportError as error:
            raise _failure(error) from None

    return send


async def _read(response: "httpx.Response", limit: int) -> tuple[bytes, bool]:
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > limit:
                return bytes(body[:limit]), True
    except Exception:
        return bytes(body), True
    return bytes(body), False
