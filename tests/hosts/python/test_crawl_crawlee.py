"""Crawlee over a pool, with its default of a thousand sessions: no page is lost, and a crawl that can't go on ends and says why."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import hopline
import pytest
from crawlee import ConcurrencySettings, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler, PlaywrightCrawlingContext
from crawlee.errors import ProxyError
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import FileSystemStorageClient, MemoryStorageClient
from crawling import CHROMIUM, PAGES, POOL, TRUSTING, CookieSite, Target, needs_chromium, ran_page, target
from hopline.crawlee import HoplineHttpClient
from hopline.crawlee_playwright import HoplinePlaywrightCrawler


def impit() -> ImpitHttpClient:
    return ImpitHttpClient(verify=False)


class Crawl:
    """A crawl and its results."""

    def __init__(self) -> None:
        self.got: Counter[str] = Counter()
        self.failed: list[str] = []
        self.why: list[str] = []

    async def run(self, pool: Any, url: str, pages: int, *, storage: Path | None = None, stops: bool = False, **options: Any) -> None:
        client = HoplineHttpClient(pool, impit, on_stuck=self.stop if stops else None)
        if storage is not None:
            options |= {"configuration": Configuration(storage_dir=str(storage), purge_on_start=False), "storage_client": FileSystemStorageClient()}
        crawler: HttpCrawler
        self.crawler = crawler = HttpCrawler(
            http_client=client,
            concurrency_settings=ConcurrencySettings(desired_concurrency=6, max_concurrency=6),
            configure_logging=False,
            **{"storage_client": MemoryStorageClient()} | options,
        )

        @crawler.router.default_handler
        async def page(context: Any) -> None:
            self.got[context.request.url.rpartition("/")[2]] += 1

        @crawler.failed_request_handler
        async def fail(context: Any, error: Exception) -> None:
            self.failed.append(f"{type(error).__name__}: {error}")

        await asyncio.wait_for(crawler.run([f"{url}/p{number}" for number in range(pages)]), 240)

    def stop(self, why: str) -> None:
        self.why.append(why)
        self.crawler.stop(why)

    def check(self, pages: int) -> None:
        assert self.got == Counter(f"p{number}" for number in range(pages)) and not self.failed, (self.got, self.failed)


@contextlib.asynccontextmanager
async def opened(site: Target, folder: Path, **options: Any) -> AsyncIterator[Any]:
    async with hopline.AsyncAgentClient(**site.sandbox.account, store=hopline.FolderStore(folder / "records"), daily_cap_usd=100) as agent:
        async with agent.open_pool(**POOL | options) as pool:
            yield pool


def test_no_page_is_lost_with_a_thousand_sessions_of_crawlee_over_three_of_a_pool(tmp_path: Path) -> None:
    crawl = Crawl()

    async def life(site: Target) -> None:
        async with opened(site, tmp_path) as pool:
            await crawl.run(pool, site.url, 60)

    with target(tmp_path) as site:
        site.rules(block_after=10)
        asyncio.run(life(site))
        crawl.check(60)
        site.check_pages(60)


def test_a_balance_that_is_empty_and_comes_back_costs_no_page(tmp_path: Path) -> None:
    crawl = Crawl()

    async def life(site: Target) -> None:
        async with opened(site, tmp_path) as pool:
            running = asyncio.create_task(crawl.run(pool, site.url, 12, max_session_rotations=2, navigation_timeout=timedelta(seconds=8)))
            while (hold := (await pool.status()).hold) is None:
                await asyncio.sleep(0.05)
            assert hold.reason == "balance"
            await asyncio.sleep(3)
            site.sandbox.control("balance", {"amount": "100"})
            await pool.resume()  # so that nobody waits for the next trial
            await running

    with target(tmp_path, "--balance", "0") as site:
        asyncio.run(life(site))
        crawl.check(12)


@pytest.mark.parametrize("stops", [True, False])
def test_a_pool_that_is_held_ends_the_crawl_and_says_why_and_its_pages_stay_if_it_is_stopped(stops: bool, tmp_path: Path) -> None:
    first, again = Crawl(), Crawl()

    async def life(site: Target) -> None:
        async with opened(site, tmp_path) as pool:
            await first.run(pool, site.url, 12, storage=tmp_path / "queue", stops=stops)
        assert not first.got and site.sandbox.charges() == 0
        if not stops:
            assert len(first.failed) == 12 and all("since the account may not buy" in failed for failed in first.failed), first.failed
            return
        assert not first.failed and len(first.why) == 1 and "since the account may not buy" in first.why[0]
        site.sandbox.control("account", {"denied": []})
        # As a process that is started again would.
        service_locator.storage_instance_manager.clear_cache()
        async with opened(site, tmp_path) as pool:
            await again.run(pool, site.url, 0, storage=tmp_path / "queue", stops=stops)
        again.check(12)

    with target(tmp_path) as site:
        site.sandbox.control("account", {"denied": ["create_session"]})
        asyncio.run(life(site))


def test_where_everybody_is_blocked_nothing_more_is_bought_and_few_exits_are_changed(tmp_path: Path) -> None:
    crawl = Crawl()

    async def life(site: Target) -> None:
        async with opened(site, tmp_path) as pool:
            await crawl.run(pool, site.url, 4, max_session_rotations=2, navigation_timeout=timedelta(seconds=4))

    with target(tmp_path) as site:
        site.rules(block_all_ms=3_600_000)
        asyncio.run(life(site))
        assert not crawl.got and len(crawl.failed) == 4
        assert site.sandbox.charges() <= 3 and site.sandbox.times("rotate_session") <= 5 and len(site.visits()) <= 9


def test_cookies_keep_to_their_exit_and_a_block_is_seen_in_the_page(tmp_path: Path) -> None:
    crawl = Crawl()

    async def life(site: Target, shop: CookieSite) -> None:
        async with opened(site, tmp_path, rotate_after_uses=4, blocked=lambda page: "captcha" in page.text) as pool:
            await crawl.run(pool, shop.url, 30, max_session_rotations=5)

    with target(tmp_path) as site, CookieSite() as shop:
        asyncio.run(life(site, shop))
        crawl.check(30)
        sent = [(exit, part) for exit, _, cookie in shop.visits if cookie for part in cookie.split("; ")]
        assert sent and all(part in (f"exit={exit}", "step=1") for exit, part in sent), shop.visits
        assert sum(path == "/p5" for _, path, _ in shop.visits) == 2 and len({exit for exit, *_ in shop.visits}) > 3


def test_no_session_is_an_error_of_crawlees_and_of_hoplines(tmp_path: Path) -> None:
    async def life(site: Target) -> None:
        async with opened(site, tmp_path, size=1) as pool, HoplineHttpClient(pool, impit) as client:
            session: Any = type("Session", (), {"id": "s-1"})()
            async with pool.acquire():
                with pytest.raises(ProxyError) as caught:
                    await client.send_request(site.url, session=session, timeout=timedelta(seconds=0.5))
            assert isinstance(caught.value, hopline.Unavailable) and caught.value.reason == "leased"
            assert (await client.send_request(f"{site.url}/p1")).status_code == 200

    with target(tmp_path) as site:
        asyncio.run(life(site))
    with pytest.raises(hopline.Misuse, match="`HoplineHttpClient` works through a pool that an `AsyncAgentClient` opened"):
        HoplineHttpClient(None)  # type: ignore[arg-type]


@needs_chromium
def test_each_page_of_crawlees_browsers_has_a_lease_and_a_context_and_none_is_lost(tmp_path: Path) -> None:
    got: Counter[str] = Counter()
    failed: list[str] = []

    async def life(site: Target) -> None:
        async with opened(site, tmp_path) as pool:
            crawler = HoplinePlaywrightCrawler(
                pool,
                browser_launch_options={"executable_path": CHROMIUM, "args": TRUSTING, "chromium_sandbox": False},
                concurrency_settings=ConcurrencySettings(desired_concurrency=3, max_concurrency=3),
                configure_logging=False,
                storage_client=MemoryStorageClient(),
            )

            @crawler.router.default_handler
            async def page(context: PlaywrightCrawlingContext) -> None:
                lease = crawler.lease_of(context.page)
                assert lease.valid and context.page.context.browser is not None and len(context.page.context.browser.contexts) <= 3
                got[context.request.url.rpartition("/")[2]] += 1

            @crawler.failed_request_handler
            async def fail(context: Any, error: Exception) -> None:
                failed.append(f"{type(error).__name__}: {error}")

            await asyncio.wait_for(crawler.run([f"{site.url}/p{number}" for number in range(PAGES)]), 240)
            assert (await pool.status()).leased == 0

    with target(tmp_path) as site:
        # Each context asks for an icon beside its page. Where exits give fewer than three good answers, a pool changes one a minute only.
        site.rules(block_after=max(11, PAGES // 3))
        asyncio.run(life(site))
        assert got == Counter(f"p{number}" for number in range(PAGES)) and not failed, (got, failed)
        site.check_pages(PAGES, is_browser=True)


def test_the_program_of_the_page_fetches_each_url(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        urls = [f"{site.sandbox.ready['target_url']}p{page}" for page in range(3)]
        out = ran_page("crawl_crawlee", site, tmp_path, *urls)
        assert sorted(line for line in out.splitlines() if line.startswith("http")) == [f"{url} 200" for url in urls]
        assert len(site.visits()) == 3 and site.sandbox.charges() >= 1


@needs_chromium
def test_the_program_of_the_page_on_browsers_fetches_each_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPLINE_CHROMIUM", CHROMIUM or "")
    monkeypatch.setenv("CRAWLEE_DISABLE_BROWSER_SANDBOX", "1")
    with target(tmp_path) as site:
        urls = [f"{site.sandbox.ready['target_url']}p{page}" for page in range(2)]
        out = ran_page("crawl_crawlee_playwright", site, tmp_path, *urls)
        assert sorted(line.strip() for line in out.splitlines() if line.startswith("http")) == urls
        assert len(site.visits()) == 2
