"""Transports of httpx and httpx2 that send through a pool.

    import httpx
    from hopline.httpx import PoolTransport

    with agent.open_pool("shop", size=3, use_with="httpx", ...) as pool, httpx.Client(transport=PoolTransport(pool)) as http:
        page = http.get("https://shop.example/")

Each request has a lease of its own, until its body is read or closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from time import monotonic
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from ._through import KEEPING, KEPT, WAIT, Asked, AsyncSending, Cookies, Exit, Exits, Sending, check_pool, through, through_async

if TYPE_CHECKING:
    import httpx
    import httpx2

    from ._async_pool import AsyncLease, AsyncPool
    from ._sync_pool import Lease, Pool

    class _Transport(httpx.BaseTransport, httpx2.BaseTransport): ...  # type: ignore[misc]

    class _AsyncTransport(httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport): ...  # type: ignore[misc]
else:
    _Transport = _AsyncTransport = object

__all__ = ["AsyncPoolTransport", "PoolTransport"]


class PoolTransport(_Transport):
    """A transport for `httpx.Client` or `httpx2.Client`. Its connections are closed with the client.

    Args:
        pool: A pool that an `AgentClient` opened.
        key: A key for a sticky session, for all requests of this transport.
        wait: The seconds for which a request waits for a session.
        options: The options of an `HTTPTransport` for each exit, such as `verify` and `http2`. Those of the client itself do not reach a
            transport.
    """

    def __init__(self, pool: Pool, *, key: str | None = None, wait: float = WAIT, **options: Any) -> None:
        check_pool(pool, "Pool", "PoolTransport")
        self._pool, self._key, self._wait = pool, key, wait
        self._through = _Through("HTTPTransport", options)

    if TYPE_CHECKING:

        @overload
        def handle_request(self, request: httpx.Request) -> httpx.Response: ...
        @overload
        def handle_request(self, request: httpx2.Request) -> httpx2.Response: ...

    def handle_request(self, request: Any) -> Any:
        """Sends a request through a lease; a safe one that is blocked, through up to two others."""
        sending = _Sending(self._through, request)
        response, lease = through(self._pool, sending.asked(self._key, self._wait), sending)
        if lease is not None:
            response.stream = sending.body(_Body, response.stream, lease)
        return response

    def close(self) -> None:
        """Closes the connections."""
        for transport in self._through.exits.clear():
            transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None, at: TracebackType | None = None
    ) -> None:
        self.close()


class AsyncPoolTransport(_AsyncTransport):
    """A transport for `httpx.AsyncClient` or `httpx2.AsyncClient`, and a pool that an `AsyncAgentClient` opened."""

    def __init__(self, pool: AsyncPool, *, key: str | None = None, wait: float = WAIT, **options: Any) -> None:
        check_pool(pool, "AsyncPool", "AsyncPoolTransport")
        self._pool, self._key, self._wait = pool, key, wait
        self._through = _Through("AsyncHTTPTransport", options)

    if TYPE_CHECKING:

        @overload
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response: ...
        @overload
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response: ...

    async def handle_async_request(self, request: Any) -> Any:
        """Sends a request through a lease; a safe one that is blocked, through up to two others."""
        sending = _AsyncSending(self._through, request)
        response, lease = await through_async(self._pool, sending.asked(self._key, self._wait), sending)
        if lease is not None:
            response.stream = sending.body(_AsyncBody, response.stream, lease)
        return response

    async def aclose(self) -> None:
        """Closes the connections."""
        for transport in self._through.exits.clear():
            await transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None, at: TracebackType | None = None
    ) -> None:
        await self.aclose()


class _Through:
    """The exits of a transport, and their cookies."""

    def __init__(self, transport: str, options: dict[str, Any]) -> None:
        self._transport, self._options = transport, options
        self.exits, self.cookies = Exits[Any](self._connect), Cookies()
        self.library: ModuleType | None = None
        """httpx or httpx2, as of the client's requests."""

    def _connect(self, lease: Any) -> Any:
        if "_context" not in vars(self):  # a TLS context for all exits, since making one takes longer than a request
            trust = {name: self._options.pop(name) for name in ("verify", "cert", "trust_env") if name in self._options}
            self._context = self.library.create_ssl_context(**trust)  # type: ignore[union-attr]
        library: Any = self.library
        proxy = library.Proxy(lease.proxy.for_httpx()["proxy"])  # not as a text, which older ones do not take
        return getattr(library, self._transport)(verify=self._context, proxy=proxy, **self._options)


class _Request:
    """A request, and what both kinds of transports do with it."""

    def __init__(self, its: _Through, request: Any) -> None:
        self._its, self._request = its, request
        roots = [kind.__module__.partition(".")[0] for kind in type(request).__mro__]
        self._library = its.library = import_module("httpx2" if "httpx2" in roots else "httpx")
        self.client_error: type[Exception] = self._library.ProxyError

    def asked(self, key: str | None, wait: float) -> Asked:
        """The request for the pool. A body that is a stream can be sent once only."""
        is_sent_once = not isinstance(self._request.stream, self._library.ByteStream)
        return Asked(self._request.method, str(self._request.url), key=key, wait=wait, is_sent_once=is_sent_once)

    def body(self, kind: type, stream: Any, lease: Any) -> Any:
        """The body of an answer, which gives the lease back."""
        return _of(self._library, kind)(stream, lease)

    def _with_cookies(self, exit: Exit[Any]) -> Any:
        request, given = self._request, self._request.headers.get("cookie")
        cookie = self._its.cookies.header(exit, str(request.url), given)
        if cookie == given:
            return request
        headers = request.headers.copy()
        headers.pop("cookie", None)
        if cookie is not None:
            headers["cookie"] = cookie
        return self._library.Request(request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions)

    def _came(self, exit: Exit[Any], response: Any) -> Any:
        headers, response.request = response.headers, self._request
        self._its.cookies.take(exit, str(self._request.url), response.status_code, headers.get("location"), headers.get_list("set-cookie"))
        return response

    def _read(self, response: Any, body: bytes) -> Any:
        """Keeps a body that was read, for the client, and returns the same answer for the pool's rule."""
        response.stream = self._library.ByteStream(body)
        return self._library.Response(response.status_code, headers=response.headers, request=self._request, stream=response.stream)


class _Sending(_Request, Sending[Any, Any]):
    def send(self, lease: Lease) -> Any:
        exit, old = self._its.exits.of(lease)
        if old is not None:
            old.close()
        return self._came(exit, exit.connections.handle_request(self._with_cookies(exit)))

    def observe(self, lease: Lease, answer: Any) -> str:
        try:
            return lease.observe(answer)
        except self._library.ResponseNotRead:  # the pool's rule looks at the page
            body = b"".join(_seen_by(lease, answer.stream))
            answer.stream.close()
            read = self._read(answer, body)
            read.read()
            return lease.observe(read)

    def keep(self, answer: Any) -> None:
        body = _Short()
        with suppress(Exception):  # a block remains one without its body
            for part in answer.stream:
                if not body.takes(part):
                    break
            else:
                body.is_whole = True
        with suppress(Exception):
            answer.stream.close()
        answer.stream = self._library.ByteStream(body.told())

    def drop(self, answer: Any) -> None:
        answer.close()


class _AsyncSending(_Request, AsyncSending[Any, Any]):
    async def send(self, lease: AsyncLease) -> Any:
        exit, old = self._its.exits.of(lease)
        if old is not None:
            await old.aclose()
        return self._came(exit, await exit.connections.handle_async_request(self._with_cookies(exit)))

    async def observe(self, lease: AsyncLease, answer: Any) -> str:
        try:
            return lease.observe(answer)
        except self._library.ResponseNotRead:
            body = b"".join([part async for part in _seen_by_async(lease, answer.stream)])
            await answer.stream.aclose()
            read = self._read(answer, body)
            await read.aread()
            return lease.observe(read)

    async def keep(self, answer: Any) -> None:
        body = _Short()
        with suppress(Exception):
            async for part in answer.stream:
                if not body.takes(part):
                    break
            else:
                body.is_whole = True
        with suppress(Exception):
            await answer.stream.aclose()
        answer.stream = self._library.ByteStream(body.told())

    async def drop(self, answer: Any) -> None:
        await answer.aclose()


class _Short:
    """A body that is kept if it is short."""

    def __init__(self) -> None:
        self._parts, self._size, self._end = list[bytes](), 0, monotonic() + KEEPING
        self.is_whole = False

    def takes(self, part: bytes) -> bool:
        """Takes a part, and returns false once there are too many of them, or they come too late."""
        self._parts.append(part)
        self._size += len(part)
        return self._size <= KEPT and monotonic() < self._end

    def told(self) -> bytes:
        """The body if all of it is here."""
        return b"".join(self._parts) if self.is_whole else b""


class _Body:
    """The body of an answer, which gives the lease back when it is closed; an answer that is dropped drops its lease."""

    def __init__(self, stream: Any, lease: Lease) -> None:
        self._stream, self._lease = stream, lease

    def __iter__(self) -> Iterator[bytes]:
        return _seen_by(self._lease, self._stream)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._lease.release()


class _AsyncBody:
    def __init__(self, stream: Any, lease: AsyncLease) -> None:
        self._stream, self._lease = stream, lease

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _seen_by_async(self._lease, self._stream)

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._lease.release()


@cache
def _of(library: ModuleType, body: type) -> type:
    """A body that the client takes for one of its own."""
    return type(body.__name__, (body, library.SyncByteStream if body is _Body else library.AsyncByteStream), {})


def _seen_by(lease: Lease, stream: Any) -> Iterator[bytes]:
    """A body, whose failure is an observation, too."""
    try:
        yield from stream
    except Exception as error:
        lease.observe(error)
        raise


async def _seen_by_async(lease: AsyncLease, stream: Any) -> AsyncIterator[bytes]:
    try:
        async for part in stream:
            yield part
    except Exception as error:
        lease.observe(error)
        raise
