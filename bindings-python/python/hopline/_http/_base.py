"""A request as data, and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._hopline import VERSION, requests_of
from .._told import FailureKind, Sent
from .._value import Value, field

_set = object.__setattr__


class Request(Value):
    """A request to send, once. It holds the API key, so it prints without its headers and body."""

    method: str
    """The method."""
    url: str
    """The whole URL."""
    headers: Mapping[str, str] = field(repr=False)
    """The headers; names are in lower case."""
    body: bytes | None = field(repr=False)
    """The body, if there is one."""
    timeout: float
    """Give up after this many seconds."""
    max_body: int
    """Read no more than this many bytes of the answer's body."""
    _aborts: list[Callable[[], object]] = field(init=False)
    _is_over: bool = field(init=False)

    if not TYPE_CHECKING:

        def __init__(self, **members: Any) -> None:
            super().__init__(**members)
            _set(self, "_aborts", [])
            _set(self, "_is_over", False)

    def on_abort(self, abort: Callable[[], object]) -> None:
        """Asks for a call, from another thread, when nobody waits for the answer any more. It is made at once where that is so already."""
        self._aborts.append(abort)
        if self._is_over:
            self.abort()

    def abort(self) -> None:
        """Breaks off whatever is under way."""
        _set(self, "_is_over", True)
        for abort in list(self._aborts):
            try:
                abort()
            except Exception:  # it was broken off already
                continue

    def is_answered(self) -> None:
        """Its connection may be another request's from now on, and is not broken off any more."""
        self._aborts.clear()


requests_of(Request, f"hopline-python/{VERSION}")  # the core makes those that are sent


class Response(Value):
    """A response. Its body is that of the API, so it does not print."""

    status: int
    """The HTTP status, whatever it is."""
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = field(default=(), repr=False)
    """The headers. Those that the client does not ask for are left out."""
    body: bytes = field(default=b"", repr=False)
    """At most `max_body` bytes of the body."""
    truncated: bool = False
    """Whether the body goes on, or broke off."""

    if not TYPE_CHECKING:

        def __init__(self, *, status: int, headers: Any = (), body: bytes = b"", truncated: bool = False) -> None:
            # One by one: every call makes one.
            _set(self, "status", status)
            _set(self, "headers", headers)
            _set(self, "body", body)
            _set(self, "truncated", truncated)


class Failed(Exception):
    """No response. A callable of your own may raise it to say why, and whether the request may have arrived."""

    def __init__(self, kind: FailureKind = "other", sent: Sent = "maybe", why: str | None = None) -> None:
        super().__init__(f"no response: {kind}; sent: {sent}")
        self.kind: FailureKind = kind
        """Why there was no response."""
        self.sent: Sent = sent
        """`never` only if no byte of the request can have left; otherwise `maybe`."""
        self.why = why
        """A sentence for people, without secrets. The error that comes of this has it as a note."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Failed, (self.kind, self.sent, self.why)


Transport: TypeAlias = Callable[[Request], Response]
"""Sends a request and waits for what comes of it."""
AsyncTransport: TypeAlias = Callable[[Request], Awaitable[Response]]
"""The same for tasks."""


def sent_headers(request: Request) -> dict[str, str]:
    """The headers to send. A compressed body could unfold without limit, so none is asked for."""
    return {**request.headers, "accept-encoding": "identity"}


def read_past(response: Any) -> None:
    """Reads on where the standard library took an interim answer for the answer, since it knows but one of them (RFC 9110, section 15.2)."""
    while 100 <= response.status < 200:
        if response.status == 101:  # nobody has asked for another protocol
            raise Failed("closed", "maybe", "the service answered with another protocol")
        response.headers = None
        response.begin()


_MEMBERS = 16
"""So many compressed parts of one body are read."""


def inflated(body: bytes, limit: int) -> tuple[bytes, bool]:
    """A body that was compressed although nobody asked for that, up to its limit, and whether it is cut short. No JSON begins so."""
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
    except zlib.error:  # it is no such body, or something else comes behind it
        if not whole:
            return body, False
    return whole[:limit], is_cut


def body_of(chunks: Iterator[bytes], limit: int) -> tuple[bytes, bool]:
    """A body up to its limit, and whether it is cut short. One that breaks off is: its status is worth keeping."""
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
    """An exception and all that it is said to come of. What was being handled meanwhile is not part of it."""
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
    """Ends what another thread reads from a socket. To close it would wait for that thread."""
    import socket

    if connection is not None:
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
