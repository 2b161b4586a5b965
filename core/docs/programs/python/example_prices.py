"""Reads the names and prices of all products of a shop, from the address of its first list of them, into prices.jsonl. Stopped by Ctrl-C and
started again, the crawl goes on where it was."""

import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

MARK = "Are you a robot?"
"""The words of the shop's captcha, which comes with status 200."""


def is_captcha(response: Any) -> bool:
    """Tells the pool that the shop has blocked this exit, which gets another address; Scrapy repeats the page."""
    return MARK in response.text


SETTINGS = {
    "ADDONS": {"hopline.scrapy.HoplineAddon": 500},
    "HOPLINE_POOL": {
        "name": "shop",
        "size": 3,
        "session_type": "dynamic",
        "product_no": "dynamic-world",
        "quantity": 0.5,
        "blocked": is_captcha,
    },
    "HOPLINE_CLIENT": {"store": "hopline-records", "daily_cap_usd": 20},
    "JOBDIR": "crawl-prices",
    "FEEDS": {"prices.jsonl": {"format": "jsonlines"}},
    "DOWNLOAD_DELAY": 0.05,  # for the whole shop, however many exits there are
    "LOG_LEVEL": "WARNING",
}


class Prices(Spider):
    name = "prices"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(sys.argv[1])

    def parse(self, response: Any) -> Iterator[Request]:
        """A list of products."""
        yield from response.follow_all(css="a.product", callback=self.product)
        yield from response.follow_all(css="a.next")

    def product(self, response: Any) -> Iterator[dict[str, Any]]:
        """A product. A shop that has changed its pages is not to fill the file with nothing."""
        name, price = response.css("h1::text").get(), response.css(".price::text").re_first(r"[\d.]+")
        if name is None or price is None:
            self.logger.error("no name or price at %s", response.url)
        else:
            yield {"url": response.url, "name": name, "price": price}


process = CrawlerProcess(SETTINGS)
crawler = process.create_crawler(Prices)
process.crawl(crawler)
process.start()
stats = crawler.stats.get_stats() if crawler.stats else {}
print(stats.get("item_scraped_count", 0), "prices; ended:", stats.get("finish_reason"))
print("blocks:", stats.get("hopline/block_count", 0), "exits:", stats.get("hopline/exit_count", 0))
