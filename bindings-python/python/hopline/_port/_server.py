"""The port itself: it accepts connections, leads each through an exit, and ends what has to end."""

from __future__ import annotations

import asyncio
import re
import socket
from asyncio import IncompleteReadError, StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import monotonic
from typing import Any

from .._log import log
from . import _pages
from ._calls import Call, read_call
from ._counts import Counts
from ._exits import DRAIN, Exit, Exits
from ._http import CHUNK, Head, Malformed, Unspoken, copy_body, read_head, written
from ._upstream import Link, connect, refused
from ._words import ProxyFailure, Refusal

HEAD = 30.0
"""So many seconds a client may take to say what it wants."""
IDLE, HALF_CLOSED = 300.0, 30.0
"""A connection over which nothing went for so many seconds is closed; sooner once one of its ends has said all."""
_LOOKS, _LAST_READ = 1.0, 2.0
_TRIES = 3
"""So many sessions of a pool are tried at most for a connection whose proxy fails before anything was sent."""


class _Reader(StreamReader):
    """A reader that calls a function once the other end has said all."""

    _at_end: Callable[[], object] | None = None
    _has_ended = False

    def call_at_end(self, call: Callable[[], object] | None) -> None:
        """Calls a function then, or at once; `None` calls none any more."""
        self._at_end = call
        if self._has_ended:
            self._end()

    def feed_eof(self) -> None:
        super().feed_eof()
        self._end()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._end()

    def _end(self) -> None:
        self._has_ended = True
        if self._at_end is not None:
            self._at_end()


class Connection:
    """A client's connection, and the one to the proxy that belongs to it."""

    def __init__(self, reader: _Reader, writer: StreamWriter) -> None:
        self.reader, self.writers = reader, [writer]
        self.task: asyncio.Task[None] | None = None
        self.exit: Exit | None = None
        self.touched = inf
        """When something went over it last. Before that, whoever it waits for has a limit of its own."""
        self.is_half_closed = False

    def abort(self) -> None:
        """Closes both at once, whatever was still to be written."""
        for writer in self.writers:
            _shut(writer.get_extra_info("socket"))
            writer.transport.abort()
        if self.task is not None:
            self.task.cancel()


def _shut(one: Any) -> None:
    """Ends a socket. A child of a fork may have it, too, and then to close it here would end nothing."""
    with suppress(OSError, AttributeError, NotImplementedError):
        one.shutdown(socket.SHUT_RDWR)


class Port:
    """A port that leads through sessions. All of it runs in one event loop."""

    def __init__(self, exits: Exits, token: str | None = None) -> None:
        self.exits, self._token = exits, token
        self.counts = Counts()
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self.over = asyncio.Event()

    async def open(self, host: str, port: int) -> str:
        """Listens, and returns the URL."""
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET

        def accepted() -> StreamReaderProtocol:
            reader = _Reader(limit=CHUNK, loop=loop)
            return StreamReaderProtocol(reader, lambda _, writer: self._begin(reader, writer), loop=loop)

        self._server = await loop.create_server(accepted, host, port, family=family, backlog=1024)
        found = self._server.sockets[0].getsockname()
        return f"http://[{found[0]}]:{found[1]}" if ":" in found[0] else f"http://{found[0]}:{found[1]}"

    async def serve(self) -> None:
        """Looks after the connections until the port is over, and ends them."""
        try:
            while not self.over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.over.wait(), _LOOKS)
                self._look()
        finally:
            await self.close()

    async def close(self) -> None:
        """Ends all connections at once, and gives their leases back."""
        self.over.set()
        if self._server is not None:
            for listening in self._server.sockets:
                _shut(listening)
            self._server.close()
        ending = [connection.task for connection in self.connections if connection.task is not None]
        for connection in list(self.connections):
            connection.abort()
        if ending:
            await asyncio.wait(ending)
        self.exits.close()

    def cut(self, one: Exit) -> list[asyncio.Task[None]]:
        """Closes the connections of an exit. Returns what ends with them."""
        ended = [connection for connection in self.connections if connection.exit is one]
        for connection in ended:
            connection.abort()
        return [connection.task for connection in ended if connection.task is not None]

    def _look(self) -> None:
        """Ends the connections over which nothing goes any more, and those of exits that are over."""
        now = monotonic()
        for connection in list(self.connections):
            one = connection.exit
            if now - connection.touched > (HALF_CLOSED if connection.is_half_closed else IDLE):
                connection.abort()
            elif one is not None and one.over_since is not None and now - one.over_since > DRAIN:
                connection.abort()
        for one in {connection.exit for connection in self.connections if connection.exit is not None}:
            if not one.is_valid:
                self.exits.give_up(one)
                self.cut(one)

    def _begin(self, reader: _Reader, writer: StreamWriter) -> None:
        if self.over.is_set():
            writer.transport.abort()
            return
        connection = Connection(reader, writer)
        self.connections.add(connection)
        connection.task = asyncio.get_running_loop().create_task(self._run(connection))

    async def _run(self, connection: Connection) -> None:
        try:
            await self._served(connection)
            self._give(connection)
            await _closed(connection)
        except (asyncio.CancelledError, OSError, Malformed, IncompleteReadError, TimeoutError):
            pass
        except Exception as error:
            log("exception", "a connection of a port failed: %s", type(error).__name__)
        finally:
            self._give(connection)
            for writer in connection.writers:
                writer.transport.abort()
            self.connections.discard(connection)

    async def _served(self, connection: Connection) -> None:
        reader, writer = connection.reader, connection.writers[0]
        try:
            async with asyncio.timeout(HEAD):
                call = await read_call(reader, writer, self._token)
                if call.head is not None and not call.host:
                    writer.write(await _pages.page(self, call.head, call.login, reader, has_token=self._token is not None))
                    return
        except Refusal as refusal:
            writer.write(refusal.http())
            return
        except Unspoken as why:
            log("warning", "a port was sent what it can't read: %s", why)
            return
        except Malformed as why:
            writer.write(Refusal(400, f"the request can't be read: {why}").http())
            return
        try:
            link = await self._way_out(connection, call)
            if call.is_tunnel:
                writer.write(call.accepted())
                await self._relay(connection, link)
            else:
                await self._plain(connection, call, link)
        except Refusal as refusal:
            self._give(connection)
            self.counts.refused += 1
            writer.write(call.refused(refusal))

    async def _way_out(self, connection: Connection, call: Call) -> Link:
        """Takes an exit and connects through it. Nothing has been sent to the target before, so another exit may be tried."""
        if connection.task is not None:
            # A client that is gone waits for no session.
            connection.reader.call_at_end(connection.task.cancel)
        tries, avoid = 1, None
        while True:
            one = connection.exit = await self.exits.take(call.key, call.host, avoid)
            try:
                link = await connect(one.address, call)
                break
            except ProxyFailure as failure:
                self.counts.failed(one)
                self._observe(one, failure)
                is_over = one.over_since is not None
                self._give(connection)
                if not is_over or tries == _TRIES:
                    raise
                tries, avoid = tries + 1, one.session_id
        if call.is_tunnel:  # one with a plain request waits for no answer either
            connection.reader.call_at_end(None)
        connection.touched = monotonic()
        connection.writers.append(link.writer)
        self.counts.begun(one)
        return link

    def _observe(self, one: Exit, failure: ProxyFailure) -> None:
        if one.observe(failure.seen) not in ("keep", None):
            self.exits.give_up(one)

    def _give(self, connection: Connection) -> None:
        """Gives the exit of a connection back, once."""
        one, connection.exit = connection.exit, None
        if one is not None:
            self.exits.give(one)

    def _counting(self, connection: Connection) -> tuple[Callable[[int], None], Callable[[int], None]]:
        """Returns the functions that count what is sent and what is received over a connection."""
        one = connection.exit
        assert one is not None

        def counting(count: Callable[[Exit, int], None]) -> Callable[[int], None]:
            def counted(size: int) -> None:
                connection.touched = monotonic()
                count(one, size)

            return counted

        return counting(self.counts.sent), counting(self.counts.received)

    async def _relay(self, connection: Connection, link: Link) -> None:
        """Passes everything on, in both directions, until both ends have said all."""
        sent, received = self._counting(connection)
        ways = ((connection.reader, link.writer, sent), (link.reader, connection.writers[0], received))
        both = [asyncio.ensure_future(_pump(connection, *way)) for way in ways]
        try:
            await asyncio.gather(*both)
        finally:
            await _end(*both)

    async def _plain(self, connection: Connection, call: Call, link: Link) -> None:
        """One request and its answer; then the connection ends, so that no second request goes to the first one's target."""
        one, head = connection.exit, call.head
        assert one is not None and head is not None
        sent, received = self._counting(connection)
        request = _rewritten(call, head, one)
        link.writer.write(request)
        sent(len(request))
        body = asyncio.ensure_future(copy_body(head.body, connection.reader, link.writer, sent))
        # The target waits in vain for the rest of a body that is not one.
        body.add_done_callback(lambda done: connection.abort() if not done.cancelled() and isinstance(done.exception(), Malformed) else None)
        try:
            await self._answer(connection, link, one, head.first[0], received)
        except ProxyFailure as failure:
            self._observe(one, failure)
            raise
        finally:
            await _end(body)

    async def _answer(self, connection: Connection, link: Link, one: Exit, method: str, received: Callable[[int], None]) -> None:
        writer = connection.writers[0]
        try:
            while (head := await read_head(link.reader)).first[1].startswith("1"):
                writer.write(written(" ".join(head.first), head.fields))
                await writer.drain()
        except (IncompleteReadError, OSError):
            raise ProxyFailure(502, "the connection through the session's proxy closed without an answer", 1, "unknown") from None
        except Malformed as why:
            raise ProxyFailure(502, f"the answer can't be read: {why}", 1, "unknown") from None
        status = head.first[1]
        if status == "407" and not one.address["scheme"].startswith("socks"):
            raise refused("the request", status, head.first[2], dict(head.fields))
        is_status = status.isdecimal() and (100 <= int(status) < 600 or status == "999")  # the last is a block of some sites
        if is_status and one.observe(_Answered(int(status), dict(head.fields))) not in ("keep", None):
            self.exits.give_up(one)
        writer.write(written(" ".join(head.first), [*head.passed_on(), ("Connection", "close")]))
        if method == "HEAD" or status in ("204", "304"):
            return
        try:
            if (length := _length(head)) == -1:
                await _pump(connection, link.reader, writer, received)
            else:
                await copy_body(length, link.reader, writer, received)
        except IncompleteReadError:  # the client sees what is missing
            one.observe("unknown")


class _Answered:
    """The status of a target, with the wait that it asks for."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers


def _rewritten(call: Call, head: Head, one: Exit) -> bytes:
    """The head of a plain request as the proxy or, behind SOCKS5, the target wants it."""
    method, target, version = head.first
    path = re.sub(r"^[^/?#]*", "", target.partition("://")[2]).partition("#")[0]
    path = path if path.startswith("/") else f"/{path}"
    place = call.target.removesuffix(":80") if call.port == 80 else call.target
    fields = [("Host", place), *head.passed_on("host"), ("Connection", "close")]
    if not one.address["scheme"].startswith("socks"):
        fields.insert(1, ("Proxy-Authorization", one.address["authorization"]))
        path = f"http://{place}{path}"
    return written(f"{method} {path} {version}", fields)


def _length(head: Head) -> int | None:
    """The length of an answer's body: -1 if it ends with the connection, or is not clear; `None` if it comes in chunks."""
    try:
        return head.body if head.has_length else -1
    except Malformed:
        return -1


async def _pump(connection: Connection, reader: StreamReader, writer: StreamWriter, count: Callable[[int], None]) -> None:
    """Passes on what one end says, no faster than the other one reads, and then that it has said all."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
        count(len(data))
    connection.is_half_closed = True
    if writer.can_write_eof():
        writer.write_eof()


async def _end(*tasks: asyncio.Task[None]) -> None:
    """Ends tasks. What they raised is known, or is of no interest any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _closed(connection: Connection) -> None:
    """Waits until a client has what it was sent. One that never reads it is cut off by the next looks."""
    reader, writer = connection.reader, connection.writers[0]
    reader.call_at_end(None)
    for upstream in connection.writers[1:]:
        upstream.close()
    connection.is_half_closed = True
    connection.touched = monotonic()
    with suppress(OSError, TimeoutError):
        writer.write_eof()
        # Closed with something unread, the connection would be reset, and the client might lose the answer.
        async with asyncio.timeout(_LAST_READ):
            while await reader.read(CHUNK):
                pass
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
