"""Fetches the URLs of its command line with Crawlee, through at most three sessions."""

import asyncio
import sys

import hopline
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from hopline.crawlee import HoplineHttpClient


async def main() -> None:
    async with (
        hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent,
        agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", quantity=0.5, protocol="http") as pool,
    ):
        # Where no request can get a session any more, the crawl stops, and the pages stay in Crawlee's queue.
        crawler = HttpCrawler(http_client=HoplineHttpClient(pool, on_stuck=lambda why: crawler.stop(why)))

        @crawler.router.default_handler
        async def page(context: HttpCrawlingContext) -> None:  # pyright: ignore[reportUnusedFunction]
            print(context.request.url, context.http_response.status_code)

        await crawler.run(sys.argv[1:])


asyncio.run(main())
