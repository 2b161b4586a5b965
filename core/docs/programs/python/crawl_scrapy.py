"""Fetches the URLs of its command line with Scrapy, through at most three sessions. Run again after it was stopped, it goes on where it was."""

import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response

SETTINGS = {
    "ADDONS": {"hopline.scrapy.HoplineAddon": 500},
    "HOPLINE_POOL": {"name": "shop", "size": 3, "session_type": "dynamic", "product_no": "dynamic-world", "quantity": 0.5},
    "HOPLINE_CLIENT": {"store": "hopline-records", "daily_cap_usd": 20},
    "JOBDIR": "crawl-shop",
    "LOG_LEVEL": "WARNING",
}


class Shop(Spider):
    name = "shop"

    async def start(self) -> AsyncIterator[Any]:
        for url in sys.argv[1:]:
            yield Request(url)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        print(response.url, response.status)
        yield {"url": response.url}


process = CrawlerProcess(SETTINGS)
crawler = process.create_crawler(Shop)
process.crawl(crawler)
process.start()
print("ended:", crawler.stats.get_value("finish_reason") if crawler.stats else None)
