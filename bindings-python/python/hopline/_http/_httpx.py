"""httpx: a client of the caller's own, blocking or async."""

from collections.abc import Awaitable, Callable
from copy import copy
from typing import TYPE_CHECKING, Any

from .._errors import misuse
from ._base import Failed, Request, Response, Transport, before_first_byte, body_of, break_off, sent_headers
from ._words import home, unsent, way_of_its_own

if TYPE_CHECKING:
    import httpx

_WAYS = ("request", "get", "post", "put", "patch", "delete")
_CACHES = ("hishel",)
_INNER = ("next_transport", "_transport")
"""The names by which the versions of a cache have the transport that sends for them."""
_PASSED_BY = ("httpx", "authlib", "opentelemetry", *_CACHES)
_MOST_KEPT = 1000
"""The most connections that are kept alive."""


class _Used(Exception):
    """A connection that was kept alive. Each request needs a new one: on an old one data may wait that is no answer to it, or it may belong
    to an event loop that has ended. The connection is closed, and nothing was sent.
    """


class _Sending:
    """One send, as httpx and httpcore report it."""

    def __init__(self, client: Any, request: Request) -> None:
        if client.is_closed:
            raise Failed("other", "never", f"nothing was sent, since the httpx.{type(client).__name__} is closed")
        if (own := way_of_its_own(client, _WAYS, _PASSED_BY)) is not None:
            raise Failed("other", "never", f"nothing was sent, since {own}")
        self._request = request
        self._is_out = self._is_heard = self._has_begun = self._is_used = self._is_shared = False
        self._stream: Any = None
        self.answer: Response | None = None
        # A copy of the client, which also reports the beginning of the transport, and the answer, before any hook of the caller's can
        # raise.
        self.client = copy(client)
        self.client._transport = _past_caches(client._transport)
        self.client._mounts = {pattern: _past_caches(transport) for pattern, transport in client._mounts.items()}

    def arguments(self, trace: Callable[[str, Any], object]) -> dict[str, Any]:
        """The arguments for httpx."""
        return {
            "method": self._request.method,
            "url": self._request.url,
            "content": self._request.body,
            # Data behind an answer belongs to no request. HTTP/2 has no such header, and none is sent there.
            "headers": sent_headers(self._request) | {"connection": "close"},
            "timeout": self._request.timeout,
            "follow_redirects": False,
            # An authentication flow could send a request a second time.
            "auth": None,
            "extensions": {"trace": trace},
        }

    def goes_out(self) -> None:
        """All hooks before the transport are done."""
        self._is_out = True

    def hear(self, event: str, info: Any) -> None:
        """httpcore tells of each request before its first byte leaves. A second one is a transport's own repeat, and goes no further."""
        self._is_heard = True
        if event.endswith((".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")):
            self._stream = info["return_value"]
        if event.endswith(".send_request_headers.started") and info["request"].method != b"CONNECT":
            if self._has_begun:
                raise Failed("closed", "maybe", "the httpx transport tried to repeat the request by itself, and was stopped")
            if self._request._is_over:
                raise Failed("aborted", "never")
            if event.startswith("http11."):
                if self._stream is None:
                    self._is_used = True
                    raise _Used
            else:
                self._is_shared = True
            self._has_begun = True

    def break_off(self) -> None:
        """Ends what a thread waits for, which may be more than a timeout: httpx waits without end for a SOCKS5 proxy that says nothing."""
        if self._stream is not None and not self._is_shared:  # others use the same connection of HTTP/2
            break_off(self._stream.get_extra_info("socket"))

    def take(self, response: "httpx.Response", body: bytes, truncated: bool) -> None:
        """The answer, which no hook can take away."""
        self.answer = Response(status=response.status_code, headers=response.headers.items(), body=body, truncated=truncated)

    def raised(self, error: Exception) -> Response | None:
        """Interprets an exception: returns the answer that had come before it, nothing if the request is to be sent anew, or raises a
        failure.
        """
        import httpx

        if self.answer is not None:
            return self.answer
        if self._is_used and not self._has_begun:
            return None
        if isinstance(error, Failed):
            raise error
        if self._has_begun:  # a transport of the caller's may have tried more after that
            raise Failed("timeout" if isinstance(error, httpx.TimeoutException) else "closed", "maybe")
        is_httpxs_own = home(self.client.send) == "httpx"
        if not self._is_out and is_httpxs_own:
            raise unsent(error, self._request)
        # Another transport may have tried something before it, and so may a replacement of a method of httpx's own, which reports nothing.
        transport = type(self.client._transport_for_url(httpx.URL(self._request.url)))
        is_told = self._is_heard or isinstance(error, (httpx.PoolTimeout, httpx.UnsupportedProtocol))
        is_sure = is_told and is_httpxs_own and transport in (httpx.HTTPTransport, httpx.AsyncHTTPTransport)
        if isinstance(error, httpx.TransportError):
            failure = _failure(error)
            raise failure if is_sure else Failed(failure.kind, "maybe", failure.why)
        raise unsent(error, self._request) if is_sure else error


def _past_caches(transport: Any) -> Any:
    """The transport that sends. A cache would answer with what was true once, and keep the secrets of answers."""
    while type(transport).__module__.partition(".")[0] in _CACHES:
        inner = next((inner for name in _INNER if (inner := getattr(transport, name, None)) is not None), None)
        if inner is None:
            raise Failed("other", "never", f"nothing was sent, since the httpx client has a `{type(transport).__name__}`; use one without a cache")
        transport = inner
    return transport


def _failure(error: Exception) -> Failed:
    """A failure before the first byte."""
    import httpx

    if isinstance(error, httpx.UnsupportedProtocol):
        return Failed("other", "never", "httpx can't send requests to this address")
    return Failed("timeout", "never") if isinstance(error, httpx.TimeoutException) else before_first_byte(error)


def _check(client: Any) -> None:
    if (own := way_of_its_own(client, _WAYS, _PASSED_BY)) is not None:
        misuse("client", own)


def transport(client: "httpx.Client") -> Transport:
    """Sends through the client, once, without redirects and its authentication."""
    _check(client)

    def send(request: Request) -> Response:
        for _ in range(_MOST_KEPT):
            sending = _Sending(client, request)
            request.on_abort(sending.break_off)

            def read(response: "httpx.Response", sending: _Sending = sending) -> None:
                if response.is_stream_consumed:  # test transports and caches have read it already
                    body, truncated = response.content[: request.max_body], len(response.content) > request.max_body
                else:
                    body, truncated = body_of(response.iter_raw(), request.max_body)
                    response.close()
                    _read_again(response, body)
                sending.take(response, body, truncated)

            hooks = client.event_hooks
            sending.client.event_hooks = {
                "request": [*hooks["request"], lambda _, sending=sending: sending.goes_out()],
                "response": [read, *hooks["response"]],
            }
            try:
                with sending.client.stream(**sending.arguments(sending.hear)) as response:
                    if sending.answer is None:  # a replacement of httpx's own `send` calls no hook
                        read(response)
                    return _taken(sending)
            except Exception as error:
                if (answer := sending.raised(error)) is not None:
                    return answer
        raise Failed("other", "never")

    return send


def _taken(sending: _Sending) -> Response:
    if sending.answer is None:
        raise Failed("closed", "maybe")
    return sending.answer


def _read_again(response: "httpx.Response", body: bytes) -> None:
    """Lets the caller's hooks read the body that was read."""
    import httpx

    response.stream = httpx.ByteStream(body)
    response.is_stream_consumed = response.is_closed = False


def async_transport(client: "httpx.AsyncClient") -> Callable[[Request], Awaitable[Response]]:
    """Returns the transport of an async client."""
    _check(client)

    async def send(request: Request) -> Response:
        for _ in range(_MOST_KEPT):
            sending = _Sending(client, request)

            async def trace(event: str, info: Any, sending: _Sending = sending) -> None:
                sending.hear(event, info)

            async def go_out(_: "httpx.Request", sending: _Sending = sending) -> None:
                sending.goes_out()

            async def read(response: "httpx.Response", sending: _Sending = sending) -> None:
                body, truncated = await _read(request, response)
                sending.take(response, body, truncated)

            hooks = client.event_hooks
            sending.client.event_hooks = {"request": [*hooks["request"], go_out], "response": [read, *hooks["response"]]}
            try:
                async with sending.client.stream(**sending.arguments(trace)) as response:
                    if sending.answer is None:
                        await read(response)
                    return _taken(sending)
            except Exception as error:
                if (answer := sending.raised(error)) is not None:
                    return answer
        raise Failed("other", "never")

    return send


async def _read(request: Request, response: "httpx.Response") -> tuple[bytes, bool]:
    limit = request.max_body
    if response.is_stream_consumed:
        return response.content[:limit], len(response.content) > limit
    body, truncated = bytearray(), False
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > limit:
                truncated = True
                break
    except Exception:
        truncated = True
    await response.aclose()
    _read_again(response, bytes(body[:limit]))
    return bytes(body[:limit]), truncated
