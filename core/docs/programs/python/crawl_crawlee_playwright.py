"""Prints the title of each URL of its command line with Crawlee and a browser, through at most three sessions."""

import asyncio
import os
import sys

import hopline
from crawlee.crawlers import PlaywrightCrawlingContext
from hopline.crawlee_playwright import HoplinePlaywrightCrawler


async def main() -> None:
    async with (
        hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent,
        agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", quantity=0.5, protocol="http") as pool,
    ):
        # The browser of this machine, if it is named, and otherwise Playwright's own.
        launch = {"executable_path": os.environ.get("HOPLINE_CHROMIUM")}
        crawler = HoplinePlaywrightCrawler(pool, browser_launch_options=launch, on_stuck=lambda why: crawler.stop(why))

        @crawler.router.default_handler
        async def page(context: PlaywrightCrawlingContext) -> None:  # pyright: ignore[reportUnusedFunction]
            if await context.page.locator("#captcha").count():
                crawler.lease_of(context.page).observe("captcha")
            print(context.request.url, await context.page.title())

        await crawler.run(sys.argv[1:])


asyncio.run(main())
