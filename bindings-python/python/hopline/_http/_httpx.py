"""httpx: a client of the caller's own, blocking or async."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, break_off, sent_headers

if TYPE_CHECKING:
    import httpx


def _arguments(request: Request, trace: Callable[[str, Any], object]) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "content": request.body,
        "headers": sent_headers(request),
        "timeout": request.timeout,
        "follow_redirects": False,
        # An authentication flow could send a request a second time.
        "auth": None,
        "extensions": {"trace": trace},
    }


def _refuse_second(event: str, info: Any, begun: list[None]) -> None:
    """httpx tells of each request before its first byte leaves. A second one is a transport's own repeat, and goes no further."""
    if event.endswith(".send_request_headers.started") and info["request"].method != b"CONNECT":
        if begun:
            raise Failed("closed", "maybe", "the httpx transport tried to repeat the request by itself, and was stopped")
        begun.append(None)


def _failure(error: Exception) -> Failed:
    import httpx

    match error:
        # Raised before a connection is there, or while one is waited for.
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            return Failed("timeout", "never")
        case httpx.ConnectError():
            return before_first_byte(error)
        case httpx.UnsupportedProtocol():
            return Failed("other", "never", "httpx can't send requests to this address")
        case httpx.TimeoutException():
            return Failed("timeout", "maybe")
        case _:
            return Failed("closed", "maybe")


def transport(client: "httpx.Client") -> Transport:
    """Sends through the client, once, without redirects and its authentication."""
    import httpx

    def send(request: Request) -> Response:
        begun: list[None] = []
        try:
            with client.stream(**_arguments(request, lambda event, info: _refuse_second(event, info, begun))) as response:
                # Test transports have no socket, and over HTTP/2 others use the same one.
                stream = response.extensions.get("network_stream")
                if stream is not None and response.http_version != "HTTP/2":
                    request.on_abort(lambda: break_off(stream.get_extra_info("socket")))
                body, truncated = body_of(_chunks(response), request.max_body)
                return Response(status=response.status_code, headers=response.headers.items(), body=body, truncated=truncated)
        except httpx.TransportError as error:
            raise _failure(error) from None

    return send


def _chunks(response: "httpx.Response") -> Iterator[bytes]:
    # Test transports and event hooks may have read it already.
    return iter((response.content,)) if response.is_stream_consumed else response.iter_raw()


def async_transport(client: "httpx.AsyncClient") -> Callable[[Request], Awaitable[Response]]:
    """The same for an async client."""
    import httpx

    async def send(request: Request) -> Response:
        begun: list[None] = []

        async def trace(event: str, info: Any) -> None:
            _refuse_second(event, info, begun)

        try:
            async with client.stream(**_arguments(request, trace)) as response:
                body, truncated = await _read(response, request.max_body)
                return Response(status=response.status_code, headers=response.headers.items(), body=body, truncated=truncated)
        except httpx.TransportError as error:
            raise _failure(error) from None

    return send


async def _read(response: "httpx.Response", limit: int) -> tuple[bytes, bool]:
    if response.is_stream_consumed:
        return response.content[:limit], len(response.content) > limit
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > limit:
                return bytes(body[:limit]), True
    except Exception:
        return bytes(body), True
    return bytes(body), False
