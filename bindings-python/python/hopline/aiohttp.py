"""Sessions of aiohttp that send through a pool.

    from hopline.aiohttp import pool_session

    async with agent.open_pool("shop", size=3, use_with="aiohttp", ...) as pool, pool_session(pool) as http:
        async with http.get("https://shop.example/") as page:
            ...

Each request has a lease of its own, until its body is read or closed.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDictProxy
from yarl import URL

from ._errors import misuse
from ._through import KEEPING, KEPT, LONGEST, WAIT, Asked, AsyncSending, Cookies, Exits, check_pool, through_async

if TYPE_CHECKING:
    from ._async_pool import AsyncLease, AsyncPool

__all__ = ["pool_session"]


def pool_session(
    pool: AsyncPool, *, key: str | None = None, wait: float = WAIT, ssl: Any = True, middlewares: Iterable[Any] = (), **options: Any
) -> aiohttp.ClientSession:
    """Makes a session whose requests go through a pool, also its web sockets: of those the lease goes back when they are closed.

    Args:
        pool: A pool that an `AsyncAgentClient` opened.
        key: A key for a sticky session of the pool, for all requests of this one.
        wait: The seconds for which a request waits for a session of the pool.
        ssl: The TLS context of connections, as for `aiohttp.TCPConnector`.
        middlewares: Further middlewares. Each request that they send has a lease of its own.
        options: The options of an `aiohttp.ClientSession`.
    """
    check_pool(pool, "AsyncPool", "pool_session")
    if "connector" in options:
        raise TypeError("the pool chooses the connection of each request: leave `connector` out")
    connector = _Connector(ssl)
    own = _Middleware(pool, key, wait, connector)
    return aiohttp.ClientSession(connector=connector, middlewares=(*middlewares, own), **options)


_through: ContextVar[aiohttp.TCPConnector | None] = ContextVar("hopline_connector", default=None)
"""The connections of the exit through which this task sends."""


class _Connector(aiohttp.TCPConnector):
    """Keeps the connections of each exit apart."""

    def __init__(self, ssl: Any) -> None:
        super().__init__()
        self.exits = Exits[aiohttp.TCPConnector](lambda lease: aiohttp.TCPConnector(ssl=ssl))

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
        connector = _through.get()
        if connector is None:
            misuse("pool_session", "the request was given `middlewares` of its own, and so no session of the pool; give them to `pool_session`")
        return await connector.connect(req, traces, timeout)

    async def close(self, **how: Any) -> None:
        for connector in self.exits.clear():
            await connector.close(**how)
        await super().close(**how)


class _Middleware:
    def __init__(self, pool: AsyncPool, key: str | None, wait: float, connector: _Connector) -> None:
        self._pool, self._key, self._wait = pool, key, wait
        self.exits, self.cookies = connector.exits, Cookies()

    async def __call__(self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        asked = Asked(request.method, str(request.url), key=self._key, wait=self._wait, is_sent_once=bool(request.body))
        response, lease = await through_async(self._pool, asked, _Sending(self, request, handler))
        if lease is not None:
            if response.connection is None:  # the body was there with the head
                lease.release()
            else:
                # aiohttp keeps an answer as long as its connection, even if the program has dropped it.
                late = asyncio.get_running_loop().call_later(LONGEST, lease.release)
                response.connection.add_callback(_Released(lease, response.content, late))
        return response


class _Sending(AsyncSending[Any, aiohttp.ClientResponse]):
    client_error = aiohttp.ClientConnectionError

    def __init__(self, its: _Middleware, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> None:
        self._its, self._request, self._handler = its, request, handler
        self._cookie = request.headers.get("Cookie")

    async def send(self, lease: AsyncLease) -> aiohttp.ClientResponse:
        request, url = self._request, str(self._request.url)
        exit, old = self._its.exits.of(lease)
        if old is not None:
            await old.close()
        if exit.settings is None:
            exit.settings = URL(lease.proxy.for_aiohttp()["proxy"])
        login = self._login(exit.settings)
        cookie = self._its.cookies.header(exit, url, self._cookie)
        request.headers.popall("Cookie", None)
        if cookie is not None:
            request.headers["Cookie"] = cookie
        before = _through.set(exit.connections)
        try:
            if request.url.scheme in ("http", "ws"):  # which go to the proxy without a tunnel
                request.headers.update(login)
            response = await self._handler(request)
        except aiohttp.ClientHttpProxyError as error:  # which prints the login
            told = aiohttp.RequestInfo(request.url, "CONNECT", CIMultiDictProxy(request.headers), request.url)
            raise aiohttp.ClientHttpProxyError(told, (), status=error.status, message=error.message, headers=error.headers) from None
        finally:
            _through.reset(before)
            request.headers.popall("Proxy-Authorization", None)
        got = response.headers.getall("Set-Cookie", [])
        self._its.cookies.take(exit, url, response.status, response.headers.get("Location"), got)
        return response

    def _login(self, proxy: URL) -> dict[str, str]:
        """Tells the request its proxy, whose login is in a header, as its URL is printed with errors. Returns the header."""
        login: dict[str, str] = {}
        if proxy.user is not None:
            words = f"{proxy.user}:{proxy.password or ''}".encode()
            login["Proxy-Authorization"] = "Basic " + b64encode(words).decode()
        self._request.update_proxy(proxy.with_user(None), None, dict(login))
        return login

    async def keep(self, answer: aiohttp.ClientResponse) -> None:
        content, end = answer.content, monotonic() + KEEPING
        # A short body comes without being read.
        while not content.is_eof() and content.exception() is None and content.total_bytes <= KEPT and monotonic() < end:
            with suppress(Exception):
                await asyncio.wait_for(content.wait_eof(), 0.05)
        if not content.is_eof() or content.exception() is not None:
            answer.close()
            answer.content, vars(answer)["_body"] = EMPTY_PAYLOAD, b""

    async def drop(self, answer: aiohttp.ClientResponse) -> None:
        answer.close()


class _Released:
    """The function that aiohttp calls once a connection is free again or is closed."""

    def __init__(self, lease: AsyncLease, content: aiohttp.StreamReader, late: asyncio.TimerHandle) -> None:
        self._lease, self._content, self._late = lease, content, late

    def __call__(self) -> None:
        self._late.cancel()
        try:
            # A body that the program closes early has another error.
            if isinstance(error := self._content.exception(), aiohttp.ClientPayloadError | aiohttp.ServerTimeoutError):
                self._lease.observe(error)
        finally:
            self._lease.release()
