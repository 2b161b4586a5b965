"""The standard library, for programs that bring no HTTP client. No proxy is used."""

import contextlib
import http.client
import os
import select
import selectors
import socket
import ssl
import sys
from collections import deque
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any, cast
from urllib.parse import urlsplit

from .._threads import in_warm_thread
from .._waiting import Bell, Later
from .._work import now as clocks
from ._base import Failed, Request, Response, before_first_byte, body_of, break_off, read_past, sent_headers
from ._words import home, unsent

_CHUNK = 1 << 16
_MOST_IDLE = 64
_IDLE_SECONDS = 15.0
_STAGGER = 0.25
"""The wait for an address before the next one is tried, too."""
_CONNECTING = 0.95
"""The part of a request's time after which a connection that has not come about is given up, so that it is known that nothing was sent."""
_Connection = http.client.HTTPConnection
_Idle = tuple[float, tuple[str, str], _Connection]


class Connections:
    """The connections of one client: one TLS context, and reads over connections that are kept alive.

    A write always gets a new connection: one that the service closes at the same moment would leave it in doubt.
    """

    def __init__(self) -> None:
        self._idle: deque[_Idle] = deque()
        self._context: ssl.SSLContext | None = None
        self._is_closed = False

    def __call__(self, request: Request) -> Response:
        """Sends a request."""
        url = urlsplit(request.url)
        place = (url.scheme, url.netloc)
        connection = self._kept(place) if request.method == "GET" else None
        if connection is None:
            connection = self._connected(request, place, url.hostname or "", url.port)
        reusable = False
        try:
            response = _answer(connection, request, f"{url.path or '/'}?{url.query}" if url.query else url.path or "/")
            body, truncated = body_of(chunks(response), request.max_body)
            response.close()
            request.is_answered()
            reusable = not truncated and not getattr(response, "will_close", True)  # a cassette's does not say
            return Response(status=response.status, headers=response.getheaders(), body=body, truncated=truncated)
        finally:
            if reusable:
                self._keep(place, connection)
            else:
                connection.close()

    def close(self) -> None:
        """Closes the connections that are kept alive. Those in use close when they are done."""
        self._is_closed = True
        while (idle := _taken(self._idle)) is not None:
            idle[2].close()

    __del__ = close

    def _connected(self, request: Request, place: tuple[str, str], host: str, port: int | None) -> _Connection:
        connection: _Connection
        try:
            if place[0] == "https":
                self._context = context = self._context or ssl.create_default_context()
                connection = http.client.HTTPSConnection(host, port, context=context, timeout=request.timeout)
            else:
                context = None
                connection = http.client.HTTPConnection(host, port, timeout=request.timeout)
            if home(type(connection).__init__) == "http":  # a test's replacement connects by itself, if at all
                if _is_replaced(connection):
                    connection.connect()
                else:
                    plain = _connect(request, connection.host, connection.port)
                    connection.sock = plain if context is None else _secured(context, request, plain, connection.host)
        except (OSError, UnicodeError) as error:
            raise before_first_byte(error) from None
        except Exception as error:  # code of the program may watch connections
            raise unsent(error, request) from None
        return connection

    def _kept(self, place: tuple[str, str]) -> _Connection | None:
        """A connection that the service has not closed, the last used first."""
        while (idle := _taken(self._idle)) is not None:
            since, where, connection = idle
            if where == place and _seconds() - since < _IDLE_SECONDS and not _is_readable(connection):
                return connection
            connection.close()
        return None

    def _keep(self, place: tuple[str, str], connection: _Connection) -> None:
        self._idle.append((_seconds(), place, connection))
        while len(self._idle) > _MOST_IDLE or self._is_closed:
            if (idle := _taken(self._idle, oldest=True)) is None:
                return
            idle[2].close()


def _taken(idle: deque[_Idle], oldest: bool = False) -> _Idle | None:
    # Other threads take connections, too.
    try:
        return idle.popleft() if oldest else idle.pop()
    except IndexError:
        return None


def _connect(request: Request, host: str, port: int) -> socket.socket:
    """Connects to the first address that answers, within the time of the request for all of them. The next one is tried when one has failed, or
    has not answered for a while: then both go on (RFC 8305)."""
    end = _seconds() + _CONNECTING * request.timeout
    rest = _in_turns(_addresses(request, host, port))
    now = next_at = _seconds()
    failure: OSError = TimeoutError()
    tried: set[socket.socket] = set()
    try:
        with selectors.DefaultSelector() as waiting:
            while (rest or tried) and now < end and not request._is_over:
                if rest and (not tried or now >= next_at):
                    next_at = now + _STAGGER
                    try:
                        waiting.register(_begun(request, rest.popleft(), tried), selectors.EVENT_WRITE)
                    except OSError as error:
                        failure, next_at = error, now
                        continue
                for key, _ in waiting.select(max((min(next_at, end) if rest else end) - now, 0)):
                    made = cast(socket.socket, key.fileobj)
                    waiting.unregister(made)
                    tried.discard(made)
                    if (number := made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) == 0 and not request._is_over:
                        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        made.settimeout(request.timeout)
                        return made
                    made.close()
                    failure, next_at = OSError(number, os.strerror(number)), now
                now = _seconds()
        raise TimeoutError if tried or now >= end else failure
    finally:
        for made in tried:
            made.close()


def _addresses(request: Request, host: str, port: int) -> list[Any]:
    """The addresses of a host. The system's resolver has no time limit, so a name is looked up in another thread, which can be given up."""
    with contextlib.suppress(ValueError):
        ip_address(host)
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    bell, found = Bell(), Later[Any]()

    def look_up() -> None:
        try:
            found.tell(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
        except BaseException as error:  # the exception belongs to the caller that waits
            found.tell(error)

    found.then(bell.ring)
    request.on_abort(bell.ring)
    try:
        in_warm_thread(look_up)
    except RuntimeError:  # there can be no more threads
        look_up()
    bell.wait(_CONNECTING * request.timeout)
    if not found.is_known:
        raise TimeoutError
    if isinstance(found.value, BaseException):
        raise found.value
    return cast(list[Any], found.value)


def _seconds() -> float:
    """The time by a clock that no test stops."""
    return clocks()[1] / 1000


_SYSTEMS = ("socket", "gevent", "eventlet")
"""The packages whose sockets are the system's."""


def _is_replaced(connection: _Connection) -> bool:
    """Returns true if a test or a program has replaced a part of what connects, such as to allow no connection: then that part is used."""
    home_of_sockets = str(getattr(socket.socket, "__module__", "")).partition(".")[0]
    return home(type(connection).connect) != "http" or home(socket.create_connection) not in _SYSTEMS or home_of_sockets not in _SYSTEMS


def _in_turns(found: list[Any]) -> deque[Any]:
    """Addresses in the order in which they are tried: the family changes from one to the next, since one of them may lead nowhere."""
    first = [one for one in found if one[0] == found[0][0]]
    other = [one for one in found if one[0] != found[0][0]]
    pairs = zip_longest(first, other)
    return deque(one for pair in pairs for one in pair if one is not None)


def _begun(request: Request, address: Any, tried: set[socket.socket]) -> socket.socket:
    """A socket that has begun to connect."""
    family, kind, protocol, _, at = address
    made = socket.socket(family, kind, protocol)
    try:
        request.on_abort(lambda: break_off(made))
        made.setblocking(False)
        with contextlib.suppress(BlockingIOError):  # under way
            made.connect(at)
    except BaseException:
        made.close()
        raise
    tried.add(made)
    return made


def _secured(context: ssl.SSLContext, request: Request, plain: socket.socket, host: str) -> ssl.SSLSocket:
    made = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    try:
        request.on_abort(lambda: break_off(made))
        made.do_handshake()
    except BaseException:
        made.close()
        raise
    return made


def _answer(connection: _Connection, request: Request, target: str) -> http.client.HTTPResponse:
    plain = connection.sock  # the connection forgets the socket if the answer is the last one
    request.on_abort(lambda: break_off(plain))
    try:
        if plain is not None:
            plain.settimeout(request.timeout)
        connection.request(request.method, target, body=request.body, headers=sent_headers(request))
        response = connection.getresponse()
        read_past(response)
        return response
    except TimeoutError:
        raise Failed("timeout", "maybe") from None
    except (OSError, http.client.HTTPException):
        raise Failed("closed", "maybe") from None


def _is_readable(connection: _Connection) -> bool:
    """Returns true if an idle connection has something to read: its end, or unrequested data."""
    if connection.sock is None:
        return True
    try:
        if sys.platform == "win32":
            return bool(select.select([connection.sock], [], [], 0)[0])
        waiting = select.poll()
        waiting.register(connection.sock, select.POLLIN)
        return bool(waiting.poll(0))
    except (OSError, ValueError):
        return True


def chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The body of a response."""
    left = response.length
    while chunk := response.read1(_CHUNK):
        left = left and left - len(chunk)
        yield chunk
    if left:
        raise http.client.IncompleteRead(b"")  # `read1` ends quietly where the connection does
