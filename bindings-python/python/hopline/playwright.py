"""Playwright over a pool of sessions: a browser context for each exit. `pip install hopline[playwright]`.

    async with AsyncPoolContexts(browser, pool) as contexts, contexts.lease("shop.example") as (lease, context):
        page = await context.new_page()
        response = await page.goto("https://shop.example/")
        lease.observe(response)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ._through import WAIT, Exits, check_pool

try:
    import playwright  # noqa: F401
except ImportError:
    raise ImportError('hopline.playwright needs Playwright: pip install "hopline[playwright]"') from None

from playwright.async_api import Error

if TYPE_CHECKING:
    from playwright import async_api, sync_api

    from ._async_pool import AsyncLease, AsyncPool
    from ._sync_pool import Lease, Pool

__all__ = ["AsyncPoolContexts", "PoolContexts"]

T = TypeVar("T")
_PATIENCE = 10.0
"""So many seconds a browser may take for what has to be done though its task is cancelled."""


class _Held:
    """The context of an exit, made by its first lease, and the leases that use it now."""

    def __init__(self) -> None:
        self.context: Any = None
        self.users, self.lock = 0, asyncio.Lock()

    def keep(self, context: Any) -> Any:
        """Keeps a context until it is closed, by whomever."""
        self.context = context
        context.on("close", lambda _: self._forget(context))
        return context

    def _forget(self, context: Any) -> None:
        if self.context is context:
            self.context = None


class AsyncPoolContexts:
    """The browser contexts of a pool's exits, for Playwright's API of tasks. A context with its cookies and connections lives as long as its exit:
    when a session's `generation` has grown, its context is closed, and the next lease has a new one.

    Args:
        browser: A browser that Playwright has launched, or is connected to.
        pool: A pool that an `AsyncAgentClient` opened, with `protocol="http"`.
        timeout: The seconds for which a lease waits for a session.
        options: The options of `browser.new_context`, for each context.
    """

    def __init__(self, browser: async_api.Browser, pool: AsyncPool, *, timeout: float = WAIT, **options: Any) -> None:
        check_pool(pool, "AsyncPool", "AsyncPoolContexts")
        self._browser, self._pool, self._timeout, self._options = browser, pool, timeout, options
        self._exits = Exits(lambda _: _Held())

    @asynccontextmanager
    async def lease(
        self, target: str | None = None, *, key: str | None = None, avoid: str | None = None
    ) -> AsyncIterator[tuple[AsyncLease, async_api.BrowserContext]]:
        """Leases a session, with the browser context of its exit. When the lease goes back, the context's pages are closed.

        Report to `lease.observe` each response or exception of `page.goto`. The arguments are those of `pool.acquire`.
        """
        async with self._pool.acquire(target=target, key=key, avoid=avoid, timeout=self._timeout) as lease:
            exit, old = self._exits.of(lease)
            if old is not None and old.context is not None:
                await old.context.close()
            held = exit.connections
            async with held.lock:  # of several leases of an exit the first makes it
                context = held.context or await _to_its_end(self._made(held, lease))
            held.users += 1
            try:
                yield lease, context
            finally:
                held.users -= 1
                if not held.users:
                    with suppress(Error):  # of a page that has gone meanwhile
                        await _to_its_end(_close(context.pages))

    async def _made(self, held: _Held, lease: AsyncLease) -> async_api.BrowserContext:
        context: async_api.BrowserContext = held.keep(await self._browser.new_context(**lease.proxy.for_playwright(), **self._options))
        return context

    async def close(self) -> None:
        """Closes all contexts."""
        for held in self._exits.clear():
            if held.context is not None:
                await held.context.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _close(pages: list[async_api.Page]) -> None:
    await asyncio.gather(*(page.close() for page in pages))


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Awaits what has to be done before a lease goes back, also if the task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_PATIENCE)
        raise


class PoolContexts:
    """`AsyncPoolContexts` for Playwright's API of threads, and a pool that an `AgentClient` opened."""

    def __init__(self, browser: sync_api.Browser, pool: Pool, *, timeout: float = WAIT, **options: Any) -> None:
        check_pool(pool, "Pool", "PoolContexts")
        self._browser, self._pool, self._timeout, self._options = browser, pool, timeout, options
        self._exits = Exits(lambda _: _Held())

    @contextmanager
    def lease(
        self, target: str | None = None, *, key: str | None = None, avoid: str | None = None
    ) -> Iterator[tuple[Lease, sync_api.BrowserContext]]:
        """As of `AsyncPoolContexts`."""
        with self._pool.acquire(target=target, key=key, avoid=avoid, timeout=self._timeout) as lease:
            exit, old = self._exits.of(lease)
            if old is not None and old.context is not None:
                old.context.close()
            held = exit.connections
            context = held.context or held.keep(self._browser.new_context(**lease.proxy.for_playwright(), **self._options))
            held.users += 1
            try:
                yield lease, context
            finally:
                held.users -= 1
                for page in [] if held.users else list(context.pages):
                    page.close()

    def close(self) -> None:
        """Closes all contexts."""
        for held in self._exits.clear():
            if held.context is not None:
                held.context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
