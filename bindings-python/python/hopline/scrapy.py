"""Scrapy over a pool of sessions: `pip install hopline[scrapy]`, Scrapy 2.13 or later.

    # settings.py
    ADDONS = {"hopline.scrapy.HoplineAddon": 500}
    HOPLINE_POOL = {"name": "shop", "size": 3, "session_type": "dynamic", "product_no": "dynamic-world", "quantity": 0.5}
    HOPLINE_CLIENT = {"store": "hopline-records", "daily_cap_usd": 20}

A request leases a session where Scrapy really sends it, behind `DOWNLOAD_DELAY`, and gives it back with the answer.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Coroutine, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from ._async_agent import AsyncAgentClient
from ._crawling import AGAIN, is_stuck
from ._errors import misuse
from ._postgres_link import is_database
from ._store import FolderStore
from ._through import SAFE, Exits
from ._told import HoplineError, Unavailable

try:
    import scrapy
except ImportError:
    raise ImportError('hopline.scrapy needs Scrapy 2.13 or later: pip install "hopline[scrapy]"') from None

from scrapy import signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.downloadermiddlewares.cookies import CookiesMiddleware
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred
from w3lib.http import basic_auth_header

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from ._async_pool import AsyncLease, AsyncPool
    from ._store import Store
    from ._types import Proxy

T = TypeVar("T")

_log = logging.getLogger("hopline.scrapy")
_BLOCKED = "hopline: blocked"
"""The flag of a response that was observed as a block."""
_COOKIES = "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"
_WITH_SPIDER = tuple(scrapy.version_info[:2]) < (2, 14)
"""Scrapy 2.13 calls its components with the spider, and its handlers return a Deferred."""
_STEPS = 1000
"""The most redirects whose exits are known."""
_LOOK = 0.25
"""The seconds after which a request that waits for a session looks whether its spider is being closed."""


class HoplineAddon:
    """Sends all requests through the pool of `HOPLINE_POOL`, but for those whose `meta` names a `proxy`. Settings:

    - `HOPLINE_POOL`: the arguments of `open_pool`. The protocol is `http` unless it is given.
    - `HOPLINE_CLIENT`: the arguments of `AsyncAgentClient`; `store` may be a folder, or the address of a database.
    - `HOPLINE_TIMEOUT`: the seconds for which a request waits for a session. Default: 600. Where the pool has none that works and can't buy
      one within that time, the spider is closed, and `finish_reason` begins with `hopline_`.

    `RETRY_TIMES` is 5 unless it is given, since a block costs an attempt.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Puts the handler and the middleware in place, as Scrapy asks an add-on to."""
        if not settings.getdict("HOPLINE_POOL"):
            # Not `NotConfigured`: Scrapy would crawl on without any proxy.
            raise ValueError("hopline.scrapy needs the setting HOPLINE_POOL, with the arguments of `open_pool`")
        handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
        schemes = [scheme for scheme in ("http", "https") if handlers.get(scheme) is not None]
        settings.set("HOPLINE_HANDLERS", {scheme: handlers[scheme] for scheme in schemes}, "addon")
        for scheme in schemes:
            settings["DOWNLOAD_HANDLERS"].set(scheme, "hopline.scrapy.HoplineDownloadHandler", "cmdline")
        # Cookies belong to an exit, which is not known before the handler has it.
        settings["DOWNLOADER_MIDDLEWARES"].set(_COOKIES, None, "addon")
        # Before Scrapy's own middleware for redirects, which would follow a block that is one, and for retries.
        settings["DOWNLOADER_MIDDLEWARES"].set("hopline.scrapy.HoplineMiddleware", 845, "addon")
        settings.set("RETRY_TIMES", 5, "addon")


class ReturnedError(IgnoreRequest):
    """A request goes back to the scheduler, since its spider is being closed before it got a session."""


class HoplineMiddleware:
    """Has the pool of a crawl, and makes retries of Scrapy's own of blocked pages and of requests that got no session."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._returned: WeakSet[Request] = WeakSet()
        self._uncached: WeakSet[Request] = WeakSet()
        self._agent: AsyncAgentClient | None = None
        self._opening: asyncio.Future[AsyncPool] | None = None
        self._exits = Exits(self._connect)
        self._direct: _Exit | None = None
        self._steps: dict[str, _Exit] = {}
        self._ending: set[asyncio.Future[None]] = set()
        self._closing: asyncio.Future[None] | None = None
        self._is_stopped = False
        self._handlers = {scheme: load_object(path) for scheme, path in crawler.settings.getdict("HOPLINE_HANDLERS").items()}
        self._timeout = crawler.settings.getfloat("HOPLINE_TIMEOUT", 600)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HoplineMiddleware:
        """Makes the middleware of a crawl."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Request | Response:
        """Repeats a blocked page on another exit, as often as `RETRY_TIMES` allows, if its method is safe or its `meta` has `max_retry_times`. A
        block with a good status is then no answer.
        """
        if _BLOCKED not in response.flags:
            return response
        is_safe = request.method in SAFE or "max_retry_times" in request.meta
        again = self._retry(request, f"hopline blocked {response.status}") if is_safe else None
        if again is not None:
            return again
        if response.status < 400:
            raise IgnoreRequest(f"{response.url} was a block at each attempt")
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> Request | None:
        """Gives a request that got no session back to the scheduler, or repeats it."""
        if isinstance(exception, ReturnedError) and request not in self._returned:
            # Scrapy repeats at once what it downloads outside of the scheduler, such as robots.txt: this fails the second time.
            again = request.replace(dont_filter=True)
            self._returned.add(again)
            return again
        return self._retry(request, f"hopline {exception.reason}") if isinstance(exception, Unavailable) else None

    def _retry(self, request: Request, reason: str) -> Request | None:
        assert self.crawler.spider is not None
        if request.meta.get("dont_retry") or not self.crawler.settings.getbool("RETRY_ENABLED"):
            return None
        again = get_retry_request(request, spider=self.crawler.spider, reason=reason)
        if again is not None and request in self._uncached:
            del again.meta["dont_cache"]
        return again

    # The pool

    async def lease(self, request: Request) -> AsyncLease:
        """Waits for a session. Requests of one `cookiejar` have one session for as long as its exit stays.

        Raises `Unavailable` if none was free in time, and `ReturnedError` if the spider is being closed.
        """
        jar = request.meta.get("cookiejar")
        key = None if jar is None else str(jar)
        pool, end = await self._pool(), monotonic() + self._timeout
        while True:
            left = max(0.0, end - monotonic())
            try:
                lease = await self._unless_closing(pool.acquire(target=urlparse_cached(request).hostname, key=key, timeout=left))
                self._count("lease_count")
                return lease
            except HoplineError as why:
                if not isinstance(why, Unavailable) or is_stuck(why):
                    raise self._stop(why.reason or why.kind, why) from why
                if left == 0:
                    self._count("unavailable_count")
                    raise
            # Told at once that sessions rest for longer: one may get another exit before that.
            await self._unless_closing(asyncio.sleep(AGAIN))

    async def _unless_closing(self, waiting: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(waiting)
        try:
            while not task.done():
                if self._is_closing():
                    raise ReturnedError("the spider is being closed")
                await asyncio.wait({task}, timeout=_LOOK)
        except BaseException:
            task.cancel()
            raise
        return task.result()

    def _is_closing(self) -> bool:
        slot = None if self.crawler.engine is None else self.crawler.engine._slot
        return self._is_stopped or slot is None or slot.closing is not None

    async def _pool(self) -> AsyncPool:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        try:
            return await asyncio.shield(self._opening)
        except HoplineError as error:
            raise self._stop(error.reason or error.kind, error) from error
        except Exception as error:
            raise self._stop("settings", error) from error

    async def _open(self) -> AsyncPool:
        settings = self.crawler.settings
        pool, client = {"protocol": "http", **settings.getdict("HOPLINE_POOL")}, settings.getdict("HOPLINE_CLIENT")
        if pool["protocol"] != "http" and any(issubclass(handler, HTTP11DownloadHandler) for handler in self._handlers.values()):
            misuse("open_pool", 'Scrapy\'s own download handler speaks to HTTP proxies only; buy sessions with `protocol="http"`')
        if isinstance(store := client.get("store"), str):
            client["store"] = _store(store)
        self._agent = AsyncAgentClient(**client)
        return await self._agent.open_pool(**pool)

    def _stop(self, reason: str, error: Exception) -> ReturnedError:
        """Closes the spider, once: no request would get a session."""
        engine = self.crawler.engine
        assert engine is not None and self.crawler.spider is not None
        if not self._is_closing():
            _log.error("the spider is closed, since no request can be sent: %s", error, extra={"spider": self.crawler.spider})
            self._set("closed", str(error))
            self._closing = asyncio.ensure_future(_awaited(_close(engine, self.crawler.spider, f"hopline_{reason}")))
        self._is_stopped = True
        return ReturnedError(str(error))

    async def _closed(self) -> None:
        """Gives all back once the spider is closed. The sessions stay for the pool's next opening."""
        for exit in [*self._exits.clear(), self._direct]:
            if exit is not None:
                self._later(exit.close())
        if self._opening is not None and self._opening.done() and self._opening.exception() is None:
            pool = self._opening.result()
            self._set("spent_today_usd", str((await pool.status()).spent_today_usd))
            await pool.close(0)
        if self._agent is not None:
            await self._agent.close()
        if self._ending:
            await asyncio.wait(self._ending, timeout=5)

    # The exits

    def exit(self, lease: AsyncLease) -> _Exit:
        """Returns what belongs to the exit of a lease. No request uses that of the slot's exit before any more."""
        exit, old = self._exits.of(lease)
        if old is not None:
            self._later(old.close())
        return exit.connections

    def _connect(self, lease: AsyncLease) -> _Exit:
        self._count("exit_count")
        return _Exit(lease.proxy, self.crawler, self._handlers)

    def leads_on(self, request: Request, exit: _Exit) -> None:
        """Notes the exit whose answer is a redirect: its cookie is often what the next page looks for."""
        self._steps[request.url] = exit
        while len(self._steps) > _STEPS:
            del self._steps[next(iter(self._steps))]

    def before(self, request: Request) -> _Exit | None:
        """Returns the exit of the redirect that led to a request."""
        urls = request.meta.get("redirect_urls")
        return self._steps.get(urls[-1]) if urls else None

    async def send_direct(self, request: Request) -> Response:
        """Sends a request past the pool."""
        if self._direct is None:
            self._direct = _Exit(None, self.crawler, self._handlers)
        return await self._direct.send(request, request)

    def observe(self, lease: AsyncLease, request: Request, response: Response) -> None:
        """Observes an answer, and flags a block. A pool's `blocked` reads the page as the spider will."""
        seen = response
        decoder = self.crawler.get_downloader_middleware(HttpCompressionMiddleware)
        if lease._blocked is not None and decoder is not None and "Content-Encoding" in response.headers:
            decoder = copy.copy(decoder)
            decoder.stats = None
            seen = _called(decoder.process_response, self.crawler, request, response.copy())
        # Of a lease that is over nothing is observed, and an answer that came is as good as any.
        if lease.observe(seen) != "keep" and lease.valid:
            response.flags.append(_BLOCKED)
            if "dont_cache" not in request.meta:  # a cache would answer all repeats with the block
                request.meta["dont_cache"] = True
                self._uncached.add(request)
            self._count("block_count")

    # The rest

    def _later(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _count(self, name: str) -> None:
        if self.crawler.stats is not None:
            self.crawler.stats.inc_value(f"hopline/{name}")

    def _set(self, name: str, value: str) -> None:
        if self.crawler.stats is not None:
            self.crawler.stats.set_value(f"hopline/{name}", value)


class HoplineDownloadHandler:
    """Leases a session, sends the request through it by the handler that Scrapy had before, and gives the session back with the answer."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> HoplineDownloadHandler:
        """Makes the handler of a scheme."""
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """Sends a request."""
        middleware = self._crawler.get_downloader_middleware(HoplineMiddleware)
        if middleware is None:
            misuse("scrapy", "DOWNLOADER_MIDDLEWARES has no hopline.scrapy.HoplineMiddleware; nothing was sent")
        # Scrapy's own sign of a proxy from the environment, which the pool stands in for.
        if "proxy" in request.meta and not request.meta.get("_scheme_proxy"):
            return await middleware.send_direct(request)
        async with await middleware.lease(request) as lease:
            exit = middleware.exit(lease)
            try:
                response = await exit.send(exit.through(request), request, middleware.before(request))
            except StopDownload:
                raise
            except Exception as error:
                lease.observe(error)
                raise
            middleware.observe(lease, request, response)
            if 300 <= response.status < 400:
                middleware.leads_on(request, exit)
            return response

    async def close(self) -> None:
        """Does nothing: the pool is closed with the spider."""


class _Exit:
    """An exit, or none: the handlers with its connections, and its cookies."""

    def __init__(self, proxy: Proxy | None, crawler: Crawler, handlers: Mapping[str, type[Any]]) -> None:
        self._proxy, self._crawler, self._classes = proxy, crawler, handlers
        self._made: dict[str, Any] = {}
        self._cookies = CookiesMiddleware.from_crawler(crawler) if crawler.settings.getbool("COOKIES_ENABLED") else None

    def through(self, request: Request) -> Request:
        """Returns a copy of a request with the proxy of this exit: the request itself never has it."""
        proxy = self._proxy
        assert proxy is not None
        leased = request.copy()
        leased.meta["proxy"] = f"{proxy.url().reveal().partition('://')[0]}://{proxy.host}:{proxy.port}"
        leased.headers.pop("Proxy-Authorization", None)  # of a proxy of the environment
        if proxy.username is not None:
            password = "" if proxy.password is None else proxy.password.reveal()
            leased.headers["Proxy-Authorization"] = basic_auth_header(proxy.username.reveal(), password)
        return leased

    async def send(self, leased: Request, request: Request, before: _Exit | None = None) -> Response:
        """Sends a copy of a request, with the cookies of this exit, and of the one whose redirect led there."""
        scheme = urlparse_cached(request).scheme
        handler = self._made.get(scheme)
        if handler is None:
            handler = self._made[scheme] = build_from_crawler(self._classes[scheme], self._crawler)
        if self._cookies is not None:
            _called(self._cookies.process_request, self._crawler, leased)
            if before is not None and before is not self:
                before.add_cookies(leased)
        try:
            answer = _called(handler.download_request, self._crawler, leased)
            response: Response = await _awaited(answer)
        finally:
            if "download_latency" in leased.meta:
                request.meta["download_latency"] = leased.meta["download_latency"]
        if self._cookies is not None:
            _called(self._cookies.process_response, self._crawler, leased, response)
        return response

    def add_cookies(self, leased: Request) -> None:
        """Adds the cookies of this exit to a request that another one sends, for this once."""
        if self._cookies is not None:
            own = leased.copy()
            _called(self._cookies.process_request, self._crawler, own)
            both = [cookies for one in (own, leased) if (cookies := one.headers.get("Cookie"))]
            pairs = {pair.partition(b"=")[0].strip(): pair.strip() for pair in b";".join(both).split(b";")}
            if both:
                leased.headers["Cookie"] = b"; ".join(pairs.values())

    async def close(self) -> None:
        """Closes the connections."""
        for handler in self._made.values():
            await _awaited(handler.close())


def _store(place: str) -> Store:
    if not is_database(place):
        return FolderStore(place)
    from ._postgres import PostgresStore

    return PostgresStore(place)


def _called(method: Any, crawler: Crawler, *given: Any) -> Any:
    """Calls a method of Scrapy's, which before 2.14 wants the spider."""
    return method(*given, crawler.spider) if _WITH_SPIDER else method(*given)


def _close(engine: ExecutionEngine, spider: Spider, reason: str) -> Any:
    return engine.close_spider(spider, reason) if _WITH_SPIDER else engine.close_spider_async(reason=reason)


async def _awaited(answer: Any) -> Any:
    """Waits for what a method of Scrapy's returns."""
    if isinstance(answer, Deferred):
        answer = maybe_deferred_to_future(answer)
    return await answer if hasattr(answer, "__await__") else answer


if _WITH_SPIDER:
    _send = HoplineDownloadHandler.download_request

    def _deferred(self: HoplineDownloadHandler, request: Request, spider: Spider) -> Any:
        return deferred_from_coro(_send(self, request))

    HoplineDownloadHandler.download_request = _deferred  # type: ignore
    del HoplineDownloadHandler.close
