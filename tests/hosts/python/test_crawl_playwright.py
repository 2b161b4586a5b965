"""Playwright over a pool: a browser context for each exit, in both of Playwright's APIs."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from crawling import CHROMIUM, PAGES, POOL, TRUSTING, CookieSite, Target, needs_chromium, ran_page, target
from hopline.playwright import AsyncPoolContexts, PoolContexts
from playwright.async_api import Error, async_playwright
from playwright.sync_api import sync_playwright

pytestmark = needs_chromium


def account(site: Target, folder: Path) -> dict[str, Any]:
    return {**site.sandbox.account, "store": hopline.FolderStore(folder / "records"), "daily_cap_usd": 100}


def in_tasks(site: Target, folder: Path, work: Callable[[Any, Any, Any], Any], **options: Any) -> None:
    """Does work with a browser, a pool, and contexts over both."""

    async def life() -> None:
        async with hopline.AsyncAgentClient(**account(site, folder)) as agent, agent.open_pool(**POOL | options) as pool, async_playwright() as its:
            browser = await its.chromium.launch(executable_path=CHROMIUM, args=TRUSTING)
            async with AsyncPoolContexts(browser, pool) as contexts:
                await work(browser, pool, contexts)
            assert not browser.contexts
            await browser.close()

    asyncio.run(life())


def test_each_page_is_fetched_once_and_a_context_is_closed_when_its_exit_has_changed(tmp_path: Path) -> None:
    got: Counter[str] = Counter()

    async def work(browser: Any, pool: Any, contexts: Any) -> None:
        pages = list(range(PAGES))

        async def fetch() -> None:
            while pages:
                number = pages.pop(0)
                async with contexts.lease("127.0.0.1") as (lease, context):
                    page = await context.new_page()
                    response = await page.goto(f"{site.url}/p{number}")
                    if lease.observe(response) == "keep":
                        got[f"p{number}"] += 1
                    else:
                        pages.append(number)
                assert page.is_closed() and len(browser.contexts) <= 3

        await asyncio.gather(*(fetch() for _ in range(3)))

    with target(tmp_path) as site:
        # A browser asks for an icon beside each page. Where exits give fewer than three good answers, a pool changes one a minute only.
        site.rules(block_after=max(7, PAGES // 6))
        in_tasks(site, tmp_path, work)
        assert got == Counter(f"p{number}" for number in range(PAGES))
        site.check_pages(PAGES, is_browser=True)


def test_a_context_and_its_cookies_last_as_long_as_the_exit_and_a_closed_one_is_made_anew(tmp_path: Path) -> None:
    async def work(browser: Any, pool: Any, contexts: Any) -> None:
        seen = []
        for number in range(6):
            async with contexts.lease() as (lease, context):
                lease.observe(await (await context.new_page()).goto(f"{shop.url}/p1{number}"))
                seen.append((lease.generation, id(context)))
                if number == 4:
                    await context.close()
        # The third lease is the last of the first exit.
        generations = [generation for generation, _ in seen]
        assert generations == [generations[0]] * 3 + [generations[0] + 1] * 3 and len(set(seen[:3])) == 1
        assert seen[3] == seen[4] != seen[5] and len(browser.contexts) == 1
        async with contexts.lease() as (lease, context):
            page = await context.new_page()
            with pytest.raises(Error) as caught:
                await page.goto("https://127.0.0.1:9/")
            lease.observe(caught.value)

    with target(tmp_path) as site, CookieSite() as shop:
        in_tasks(site, tmp_path, work, size=1, rotate_after_uses=3)
        cookies = [cookie for _, path, cookie in shop.visits if path.startswith("/p1")]
        first, later = shop.visits[0][0], shop.visits[-1][0]
        assert first != later and cookies[:5] == [None, f"exit={first}", f"exit={first}", None, f"exit={later}"]


def test_leases_of_one_exit_at_once_share_its_context(tmp_path: Path) -> None:
    async def work(browser: Any, pool: Any, contexts: Any) -> None:
        met: list[Any] = []

        async def use() -> None:
            async with contexts.lease() as (lease, context):
                met.append(context)
                await context.new_page()
                while len(met) < 3:
                    await asyncio.sleep(0.01)

        await asyncio.gather(*(use() for _ in range(3)))
        assert len({id(context) for context in met}) == len(browser.contexts) == 1 and not met[0].pages

    with target(tmp_path) as site:
        in_tasks(site, tmp_path, work, size=1, leases_per_session=3)


def test_the_same_in_threads(tmp_path: Path) -> None:
    with target(tmp_path) as site, sync_playwright() as its:
        browser = its.chromium.launch(executable_path=CHROMIUM, args=TRUSTING)
        with hopline.AgentClient(**account(site, tmp_path)) as agent, agent.open_pool(**POOL | {"size": 1, "rotate_after_uses": 2}) as pool:
            with PoolContexts(browser, pool) as contexts:
                for number in range(4):
                    with contexts.lease(key="k") as (lease, context):
                        page = context.new_page()
                        assert lease.observe(page.goto(f"{site.url}/p{number}")) == "keep"
                    assert page.is_closed() and len(browser.contexts) == 1
            assert not browser.contexts
            with pytest.raises(hopline.Misuse, match="`AsyncPoolContexts` works through a pool that an `AsyncAgentClient` opened"):
                AsyncPoolContexts(browser, pool)  # type: ignore[arg-type]
        browser.close()
        assert len({visit["exit"] for visit in site.visits()}) == 2 and site.sandbox.charges() == 1


@pytest.mark.parametrize(("slow", "expected"), [("close", ["page", "lease", "context"]), ("new_context", ["lease", "context"])])
def test_a_task_that_is_cancelled_keeps_its_lease_until_its_pages_are_closed(slow: str, expected: list[str]) -> None:
    done: list[str] = []

    class Page:
        async def close(self) -> None:
            await takes_time("close")
            done.append("page")

    class Context:
        pages = [Page()]

        def on(self, *_: object) -> None: ...

        async def close(self) -> None:
            done.append("context")

    class Browser:
        async def new_context(self, **_: object) -> Context:
            await takes_time("new_context")
            return Context()

    class Lent:
        session_id, generation, slot, valid = "s", 0, 0, True
        proxy = hopline.Proxy(host="127.0.0.1", port=9, protocol="http", username="me", password="p")

        async def __aenter__(self) -> Any:
            return self

        async def __aexit__(self, *_: object) -> None:
            done.append("lease")

    class AsyncPool:
        def acquire(self, **_: object) -> Lent:
            return Lent()

    begun, may_end = asyncio.Event(), asyncio.Event()

    async def takes_time(what: str) -> None:
        if what == slow:
            begun.set()
            await may_end.wait()

    async def life() -> None:
        its: Any = (Browser(), AsyncPool())
        async with AsyncPoolContexts(*its) as contexts:

            async def use() -> None:
                async with contexts.lease():
                    pass

            task = asyncio.create_task(use())
            await begun.wait()
            task.cancel()
            assert (await asyncio.wait({task}, timeout=0.1))[1]
            may_end.set()
            await asyncio.wait({task})
            assert task.cancelled()

    asyncio.run(life())
    assert done == expected


def test_the_program_of_the_page_prints_the_title_of_each_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPLINE_CHROMIUM", CHROMIUM or "")
    with target(tmp_path) as site:
        urls = [f"{site.sandbox.ready['target_url']}p{page}" for page in range(3)]
        assert ran_page("crawl_playwright", site, tmp_path, *urls).splitlines() == [f"{url} 200" for url in urls]
        assert len(site.visits()) == 3
