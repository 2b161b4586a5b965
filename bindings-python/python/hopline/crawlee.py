"""Crawlee over a pool of sessions: `pip install hopline[crawlee]`, Crawlee 1.11 or later.

    async with agent.open_pool("shop", size=3, protocol="http", ...) as pool:
        crawler = HttpCrawler(http_client=HoplineHttpClient(pool))

Each request leases a session, with the id of Crawlee's session as its key, and gives it back with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ._crawling import AGAIN, is_stuck
from ._through import Exits, as_client_error, check_pool
from ._told import Unavailable

try:
    import crawlee  # noqa: F401
except ImportError:
    raise ImportError('hopline.crawlee needs Crawlee 1.11 or later: pip install "hopline[crawlee]"') from None

from crawlee.errors import ProxyError, SessionError
from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse, ImpitHttpClient
from crawlee.proxy_configuration import ProxyInfo

if TYPE_CHECKING:
    from types import TracebackType

    from crawlee import HttpHeaders, Request
    from crawlee.sessions import Session
    from crawlee.statistics import Statistics

    from ._async_pool import AsyncLease, AsyncPool
    from ._types import Proxy

_EXIT = "hopline_exit"
"""The member of a Crawlee session's data with the exit that its cookies are for."""
_NAVIGATION = timedelta(minutes=1)
"""The time for a request, unless Crawlee says otherwise: its own default."""


class HoplineHttpClient(HttpClient):
    """An HTTP client for Crawlee's crawlers that leases a session for each request.

    `Unavailable` is Crawlee's `ProxyError`, too: Crawlee tries again with another session of its own. While the pool can't get any session, these
    attempts do not count toward `max_session_rotations`, so no page is lost by them.

    Args:
        pool: A pool that an `AsyncAgentClient` opened.
        client: A function that makes Crawlee's client for each exit. Default: `ImpitHttpClient`.
        on_stuck: A function of a sentence, called once when no request can get a session, such as `lambda why: crawler.stop(why)`: the pages
            stay in Crawlee's queue. Without it, they fail with the sentence.
        timeout: The seconds for which crawls wait for a pool that can't get any session, where time may help. Default: 600.
    """

    def __init__(
        self,
        pool: AsyncPool,
        client: Callable[[], HttpClient] = ImpitHttpClient,
        *,
        on_stuck: Callable[[str], object] | None = None,
        timeout: float = 600,
    ) -> None:
        super().__init__()
        check_pool(pool, "AsyncPool", "HoplineHttpClient")
        self._leasing = Leasing(pool, on_stuck, timeout)
        self._exits = Exits[HttpClient](lambda _: client())

    async def crawl(
        self,
        request: Request,
        *,
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        statistics: Statistics | None = None,
        timeout: timedelta | None = None,
    ) -> HttpCrawlingResult:
        """Sends a crawler's request. The lease is waited for within half of its time."""
        begun, whole = monotonic(), timeout or _NAVIGATION
        async with self._leased(request.url, session, whole / 2, request) as (lease, client, proxy):
            # Less than what is left, so that it is the exit that is observed to be late.
            left = (whole - timedelta(seconds=monotonic() - begun)) * 0.9
            result = await client.crawl(request, session=session, proxy_info=proxy, statistics=statistics, timeout=left)
            await _observe(lease, result.http_response)
            return result

    async def send_request(
        self,
        url: str,
        *,
        method: Any = "GET",
        headers: HttpHeaders | dict[str, str] | None = None,
        payload: bytes | None = None,
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        timeout: timedelta | None = None,
    ) -> HttpResponse:
        """Sends a request of a handler's."""
        async with self._leased(url, session, timeout or _NAVIGATION) as (lease, client, proxy):
            response = await client.send_request(
                url, method=method, headers=headers, payload=payload, session=session, proxy_info=proxy, timeout=timeout
            )
            await _observe(lease, response)
            return response

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        method: Any = "GET",
        headers: HttpHeaders | dict[str, str] | None = None,
        payload: bytes | None = None,
        session: Session | None = None,
        proxy_info: ProxyInfo | None = None,
        timeout: timedelta | None = None,
    ) -> AsyncIterator[HttpResponse]:
        """Sends a request whose body is read in parts. The lease is out until then."""
        async with self._leased(url, session, timeout or _NAVIGATION) as (lease, client, proxy):
            given: dict[str, Any] = {"method": method, "headers": headers, "payload": payload, "session": session, "timeout": timeout}
            async with client.stream(url, proxy_info=proxy, **given) as response:
                lease.observe(response)
                yield response

    async def cleanup(self) -> None:
        """Closes the clients of all exits, as Crawlee asks for when a crawler ends."""
        for client in self._exits.clear():
            await _end(client)


    @asynccontextmanager
    async def _leased(
        self, url: str, session: Session | None, wait: timedelta, request: Request | None = None
    ) -> AsyncIterator[tuple[AsyncLease, HttpClient, ProxyInfo]]:
        key = None if session is None else session.id
        async with await self._leasing.lease(urlsplit(url).hostname, key, wait.total_seconds(), request) as lease:
            if session is not None:
                keep_cookies_with(lease, session, request)
            exit, old = self._exits.of(lease)
            if old is not None:
                await _end(old)
            client = exit.connections
            if not client.active:
                await client.__aenter__()
            try:
                yield lease, client, info_of(lease.proxy)
            except SessionError as error:
                if isinstance(error, ProxyError):
                    lease.observe("proxy")
                raise
            except Exception as error:
                lease.observe(error)
                raise


class Leasing:
    """The leases of a crawl, and what becomes of it while the pool can't get any session."""

    def __init__(self, pool: AsyncPool, on_stuck: Callable[[str], object] | None, timeout: float) -> None:
        self._pool, self._on_stuck, self._timeout = pool, on_stuck, timeout
        self._stuck_since: float | None = None
        self._gave_up = asyncio.Event()

    async def lease(self, target: str | None, key: str | None, wait: float, request: Request | None) -> AsyncLease:
        """Waits for a lease. The key is the id of Crawlee's session."""
        end = monotonic() + wait
        while True:
            try:
                lease = await self._pool.acquire(target=target, key=key, timeout=max(0.0, end - monotonic()))
            except Unavailable as why:
                if self._waits(why, request) and monotonic() < end:
                    await self._rest(min(AGAIN, end - monotonic()))
                    continue
                if is_stuck(why):
                    _uncount(request)
                if key is None:  # Crawlee knows a `ProxyError` by its session only
                    raise
                raise as_client_error(why, ProxyError) from None
            self._stuck_since = None
            return lease

    def _waits(self, why: Unavailable, request: Request | None) -> bool:
        """Returns true if the pool may have a session soon. Otherwise the crawl is told once that it can't go on, or the page fails for good."""
        if not is_stuck(why):
            return True
        since = self._stuck_since = self._stuck_since or monotonic()
        by_itself = why.retry_at is not None or why.reason == "store"
        if by_itself and monotonic() - since < self._timeout and not self._gave_up.is_set():
            return True
        if self._on_stuck is None:
            if request is not None:
                request.no_retry = True
        elif not self._gave_up.is_set():
            self._gave_up.set()
            self._on_stuck(str(why))
        return False

    async def _rest(self, seconds: float) -> None:
        """Waits for so long, or until the crawl is given up."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gave_up.wait(), seconds)


@dataclass
class _Page:
    """A response with its body, for the rule of a pool that looks at it."""

    status_code: int
    headers: HttpHeaders
    content: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode("utf-8", "replace")


async def _observe(lease: AsyncLease, response: HttpResponse) -> None:
    """Observes an answer. Crawlee itself knows a block by its status; one that only the page shows has to be said."""
    seen = response if lease._blocked is None else _Page(response.status_code, response.headers, await response.read())
    if lease.observe(seen) != "keep" and lease.valid and response.status_code < 400:
        raise SessionError("the page is a block")


def keep_cookies_with(lease: AsyncLease, session: Session, request: Request | None) -> None:
    """Ends a Crawlee session that was used with another exit: its cookies, and those of an answer that is still to come, belong to that one."""
    exit = f"{lease.session_id}/{lease.generation}"
    if session.user_data.get(_EXIT) not in (None, exit):
        session.retire()
        _uncount(request)
        raise SessionError("the session's exit has changed")
    session.user_data[_EXIT] = exit


def _uncount(request: Request | None) -> None:
    """Takes back the rotation that Crawlee counts next."""
    if request is not None:
        request.session_rotation_count = (request.session_rotation_count or 0) - 1


def info_of(proxy: Proxy) -> ProxyInfo:
    """A proxy as Crawlee knows it."""
    url = proxy.url().reveal()
    login = {name: secret.reveal() for name in ("username", "password") if (secret := getattr(proxy, name)) is not None}
    return ProxyInfo(url=url, scheme=url.partition("://")[0], hostname=proxy.host or "", port=proxy.port or 0, **login)


async def _end(client: HttpClient) -> None:
    await (client.__aexit__(None, None, None) if client.active else client.cleanup())
