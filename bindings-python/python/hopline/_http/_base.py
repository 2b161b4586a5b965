"""A request as data, and its outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._hopline import VERSION, requests_of
from .._told import FailureKind, Sent
from .._value import Value, field

_set = object.__setattr__


class Request(Value):
    """A request to send, once. The request holds the API key, so it prints without its headers and body."""

    method: str
    """The method."""
    url: str
    """The whole URL."""
    headers: Mapping[str, str] = field(repr=False)
    """The headers; names are in lower case."""
    body: bytes | None = field(repr=False)
    """The body, if there is one."""
    timeout: float
    """The timeout, in seconds."""
    max_body: int
    """The most bytes to read of the answer's body."""
    _aborts: list[Callable[[], object]] = field(init=False)
    _is_over: bool = field(init=False)

    if not TYPE_CHECKING:

        def __init__(self, **members: Any) -> None:
            super().__init__(**members)
            _set(self, "_aborts", [])
            _set(self, "_is_over", False)

    def on_abort(self, abort: Callable[[], object]) -> None:
        """Registers a call, from another thread, for when no caller waits for the answer any more. If that is so already, the call is made
        at once.
        """
        self._aborts.append(abort)
        if self._is_over:
            self.abort()

    def abort(self) -> None:
        """Breaks off everything that is under way."""
        _set(self, "_is_over", True)
        for abort in list(self._aborts):
            try:
                abort()
            except Exception:  # broken off already
                continue

    def is_answered(self) -> None:
        """Its connection may be another request's from now on, and is not broken off any more."""
        self._aborts.clear()


requests_of(Request, f"hopline-python/{VERSION}")  # the core makes the requests that are sent


class Response(Value):
    """A response. Its body is that of the API, so it does not print."""

    status: int
    """The HTTP status."""
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = field(default=(), repr=False)
    """The headers. Only those that the client needs are kept."""
    body: bytes = field(default=b"", repr=False)
    """The body, at most `max_body` bytes."""
    truncated: bool = False
    """True if the body is longer, or broke off."""

    if not TYPE_CHECKING:

        def __init__(self, *, status: int, headers: Any = (), body: bytes = b"", truncated: bool = False) -> None:
            # One by one: every call makes one.
            _set(self, "status", status)
            _set(self, "headers", headers)
            _set(self, "body", body)
            _set(self, "truncated", truncated)


class Failed(Exception):
    """A failure without a response. A callable of your own may raise it to give the reason, and whether the request may have arrived."""

    def __init__(self, kind: FailureKind = "other", sent: Sent = "maybe", why: str | None = None) -> None:
        super().__init__(f"no response: {kind}; sent: {sent}")
        self.kind: FailureKind = kind
        """Why there was no response."""
        self.sent: Sent = sent
        """`never` only if no byte of the request can have left; otherwise `maybe`."""
        self.why = why
        """A sentence for people, without secrets. The error that follows has it as a note."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Failed, (self.kind, self.sent, self.why)


Transport: TypeAlias = Callable[[Request], Response]
"""Sends a request and waits for its outcome."""
AsyncTransport: TypeAlias = Callable[[Request], Awaitable[Response]]
"""Sends a request for a task, and waits for its outcome."""


def sent_headers(request: Request) -> dict[str, str]:
    """The headers to send. A compressed body could unfold without limit, so none is requested."""
    return {**request.headers, "accept-encoding": "identity"}


def read_past(response: Any) -> None:
    """Reads on if the standard library took an interim answer for the answer, since it knows only one of them (RFC 9110, section 15.2)."""
    while 100 <= response.status < 200:
        if response.status == 101:  # another protocol was not requested
            raise Failed("closed", "maybe", "the service answered with another protocol")
        response.headers = None
        response.begin()


_MEMBERS = 16
"""The most compressed parts of one body that are read."""


def inflated(body: bytes, limit: int) -> tuple[bytes, bool]:
    """A body that was compressed without a request for it, up to its limit, and whether it is cut short. No JSON begins like this."""
    import zlib

    whole, rest, is_cut = b"", body, True
    try:
        for _ in range(_MEMBERS):
            unzip = zlib.decompressobj(wbits=47)
            whole += unzip.decompress(rest, limit + 1 - len(whole))
            rest = unzip.unused_data
            is_cut = len(whole) > limit or not unzip.eof or bool(rest)
            if len(whole) > limit or not rest:
                break
    except zlib.error:  # not such a body, or other data comes behind it
        if not whole:
            return body, False
    return whole[:limit], is_cut


def body_of(chunks: Iterator[bytes], limit: int) -> tuple[bytes, bool]:
    """A body up to its limit, and whether it is cut short. A body that breaks off counts as cut: its status is worth keeping."""
    body = bytearray()
    try:
        for chunk in chunks:
            body += chunk
            if len(body) > limit:
                return bytes(body[:limit]), True
    except Exception:
        return bytes(body), True
    return bytes(body), False


def causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and its explicit causes. An exception that was handled meanwhile is not one of them."""
    seen: set[int] = set()
    rest: list[BaseException] = [error]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        reason = getattr(one, "reason", None)
        inside = [*one.args, reason, one.__cause__]
        rest.extend(below for below in inside if isinstance(below, BaseException))


def break_off(connection: Any) -> None:
    """Ends another thread's read from a socket. Closing the socket would wait for that thread."""
    import socket

    if isinstance(connection, socket.socket):
        # The `shutdown` of a TLS socket drops its encryption first: data that the other thread sends in that moment would not be encrypted.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    elif connection is not None:
        connection.shutdown(socket.SHUT_RDWR)


def before_first_byte(error: BaseException) -> Failed:
    """A failure of the connect, which is before anything was sent."""
    import socket
    import ssl

    for cause in causes(error):
        if isinstance(cause, socket.gaierror):
            return Failed("dns", "never")
        if isinstance(cause, ssl.SSLError):
            return Failed("tls", "never")
        if isinstance(cause, TimeoutError):
            return Failed("timeout", "never")
    return Failed("connect", "never")


def lost(error: BaseException) -> Failed:
    """A failure that may have come at any moment. A certificate is refused before anything is sent."""
    import ssl

    refused = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))
    return Failed("tls", "never") if refused else Failed("closed", "maybe")
