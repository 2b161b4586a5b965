"""Crawlee's browser crawler over a pool of sessions: `pip install "hopline[crawlee]" "crawlee[playwright]"`.

    async with agent.open_pool("shop", size=3, protocol="http", ...) as pool:
        crawler = HoplinePlaywrightCrawler(pool)

Each page has a browser context of its own, and a lease from before the context is made until it is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ._through import LONGEST, check_pool
from .crawlee import Leasing, info_of, keep_cookies_with

try:
    from crawlee.crawlers import PlaywrightCrawler
except ImportError:
    raise ImportError('hopline.crawlee_playwright needs Crawlee\'s extra of browsers: pip install "crawlee[playwright]"') from None

from crawlee.browsers import BrowserPool
from crawlee.errors import SessionError
from crawlee.fingerprint_suite import DefaultFingerprintGenerator
from crawlee.proxy_configuration import ProxyConfiguration, ProxyInfo
from playwright.async_api import Error

if TYPE_CHECKING:
    from crawlee import Request
    from crawlee.browsers._types import BrowserType, CrawleePage
    from crawlee.crawlers import PlaywrightPostNavCrawlingContext, PlaywrightPreNavCrawlingContext
    from crawlee.fingerprint_suite import FingerprintGenerator
    from playwright.async_api import Page
    from playwright.async_api import Request as PageRequest

    from ._async_pool import AsyncLease, AsyncPool

__all__ = ["HoplinePlaywrightCrawler"]

_SLOW = 10.0
"""A page that was given up after so many seconds without an answer was late."""


class HoplinePlaywrightCrawler(PlaywrightCrawler):
    """Crawlee's `PlaywrightCrawler`, whose pages each lease a session of a pool, with the id of Crawlee's session as its key.

    Args:
        pool: A pool that an `AsyncAgentClient` opened, with `protocol="http"`.
        on_stuck: As of `HoplineHttpClient`.
        timeout: As of `HoplineHttpClient`.
        browser_type: As of a `PlaywrightCrawler`, as are all other arguments.
        browser_launch_options: The same.
        browser_new_context_options: The same.
        headless: The same.
        fingerprint_generator: The same.
        navigation_timeout: The same. A lease is waited for within half of it, and before it begins.
        options: The same, but for `browser_pool`, `proxy_configuration`, `use_incognito_pages` and `user_data_dir`.
    """

    def __init__(
        self,
        pool: AsyncPool,
        *,
        on_stuck: Callable[[str], object] | None = None,
        timeout: float = 600,
        browser_type: BrowserType | None = None,
        browser_launch_options: Mapping[str, Any] | None = None,
        browser_new_context_options: Mapping[str, Any] | None = None,
        headless: bool | None = None,
        fingerprint_generator: FingerprintGenerator | Literal["default"] | None = "default",
        navigation_timeout: timedelta = timedelta(minutes=1),
        **options: Any,
    ) -> None:
        check_pool(pool, "AsyncPool", "HoplinePlaywrightCrawler")
        self._browsers = _Browsers.with_default_plugin(
            browser_type=browser_type,
            browser_launch_options=browser_launch_options,
            browser_new_context_options=browser_new_context_options,
            headless=headless,
            fingerprint_generator=DefaultFingerprintGenerator() if fingerprint_generator == "default" else fingerprint_generator,
            use_incognito_pages=True,
            leasing=Leasing(pool, on_stuck, timeout),
            wait=navigation_timeout.total_seconds() / 2,
        )
        super().__init__(browser_pool=self._browsers, proxy_configuration=_Asking(), navigation_timeout=navigation_timeout, **options)
        self.pre_navigation_hook(self._begin)
        self.post_navigation_hook(self._came)

    def lease_of(self, page: Page) -> AsyncLease:
        """Returns the lease of a page, such as for `lease_of(context.page).observe("captcha")`."""
        return self._held_by(page).lease

    def _held_by(self, page: Page) -> _Held:
        browsers: Any = self._browsers
        held: _Held = browsers.held[page]
        return held

    async def _begin(self, context: PlaywrightPreNavCrawlingContext) -> None:
        held = self._held_by(context.page)
        held.since = monotonic()
        if context.session is not None:
            try:
                keep_cookies_with(held.lease, context.session, context.request)
            except BaseException:  # Crawlee closes a page from its navigation on
                held.end()
                raise

    async def _came(self, context: PlaywrightPostNavCrawlingContext) -> None:
        held = self._held_by(context.page)
        held.since = None
        # Crawlee itself knows a block by its status.
        if held.lease.observe(context.response) != "keep" and held.lease.valid and context.response.status < 400:
            raise SessionError("the page is a block")


class _Wanted(ProxyInfo):
    """The place of a proxy until there is a lease, with the request that it is for."""

    def __init__(self, session_id: str | None, request: Request | None) -> None:
        super().__init__("http://127.0.0.1:9", "http", "127.0.0.1", 9, session_id=session_id)
        self.request = request


class _Asking(ProxyConfiguration):
    """Tells the browsers which request a page is for."""

    def __init__(self) -> None:
        super().__init__(proxy_urls=["http://127.0.0.1:9"])

    async def new_proxy_info(self, session_id: str | None, request: Request | None, proxy_tier: int | None) -> ProxyInfo:
        return _Wanted(session_id, request)


class _Browsers(BrowserPool):
    """Browsers whose pages each have a context and a lease."""

    def __init__(self, plugins: Any = None, *, leasing: Leasing, wait: float, **options: Any) -> None:
        super().__init__(plugins, **options)
        self._leasing, self._wait = leasing, wait
        self.held: dict[Page, _Held] = {}

    async def new_page(self, *, proxy_info: ProxyInfo | None = None, **options: Any) -> CrawleePage:
        request = proxy_info.request if isinstance(proxy_info, _Wanted) else None
        target, key = (None if request is None else urlsplit(request.url).hostname), (None if proxy_info is None else proxy_info.session_id)
        lease = await self._leasing.lease(target, key, self._wait, request)
        try:
            opened = await super().new_page(proxy_info=info_of(lease.proxy), **options)
        except BaseException:
            lease.release()
            raise
        self.held[opened.page] = _Held(lease, opened.page, self.held)
        return opened

    async def __aexit__(self, *why: Any) -> None:
        ending = [held.end() for held in list(self.held.values())]
        if ending:
            await asyncio.wait(ending)
        await super().__aexit__(*why)


class _Held:
    """The lease of a page, which ends with it: Crawlee closes no context, so this does."""

    def __init__(self, lease: AsyncLease, page: Page, among: dict[Page, _Held]) -> None:
        self.lease, self.since = lease, None if page.is_closed() else monotonic()
        self._page, self._among = page, among
        self._ending: asyncio.Task[None] | None = None
        self._late = asyncio.get_running_loop().call_later(LONGEST, self.end)
        page.on("requestfailed", self._failed)
        for event in ("close", "crash"):
            page.on(event, lambda _: self.end())

    def _failed(self, request: PageRequest) -> None:
        with suppress(Error):  # of a frame that has gone
            is_page = request.is_navigation_request() and request.frame == self._page.main_frame
            if is_page and request.failure and "ERR_ABORTED" not in request.failure:
                self.since = None
                self.lease.observe(Error(f"Page.goto: {request.failure}"))

    def end(self) -> asyncio.Task[None]:
        """Closes the context, and gives the lease back."""
        if self._ending is None:
            self._late.cancel()
            if self.since is not None and monotonic() - self.since >= _SLOW:
                self.lease.observe("timeout")
            self._ending = asyncio.ensure_future(self._end())
        return self._ending

    async def _end(self) -> None:
        try:
            with suppress(Error):  # of a browser that has ended
                await self._page.context.close()
        finally:
            self._among.pop(self._page, None)
            self.lease.release()
