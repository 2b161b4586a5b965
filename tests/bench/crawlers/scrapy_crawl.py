"""A crawl of Scrapy's, as a process of its own, since a reactor runs once: standard input has the URLs and settings as JSON."""

import json
import sys
from collections.abc import AsyncIterator
from itertools import cycle
from time import perf_counter
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess

TOLD: dict[str, Any] = json.load(sys.stdin)


class Proxies:
    """Gives each request the next proxy of a list, also when it is sent again."""

    turn = cycle(TOLD.get("proxies", []))

    def process_request(self, request: Any) -> None:
        """Before a request is sent."""
        request.meta["proxy"] = next(self.turn)


class Pages(scrapy.Spider):
    """Counts the pages that came."""

    name = "pages"
    got, begun, last = 0, 0.0, 0.0

    async def start(self) -> AsyncIterator[Any]:
        """All pages."""
        Pages.begun = perf_counter()
        for url in TOLD["urls"]:
            yield scrapy.Request(url)

    def parse(self, response: Any) -> None:
        """A page."""
        Pages.got, Pages.last = Pages.got + 1, perf_counter()


settings = {
    "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False,
    "CONCURRENT_REQUESTS": TOLD["workers"],
    "CONCURRENT_REQUESTS_PER_DOMAIN": TOLD["workers"],
    "DOWNLOAD_DELAY": 0,
    "RETRY_HTTP_CODES": [403, 429, 500, 502, 503, 504],
}
if "proxies" in TOLD:
    # Before Scrapy's own one, which takes the login out of the URL.
    settings |= {"DOWNLOADER_MIDDLEWARES": {Proxies: 740}, "RETRY_TIMES": TOLD["tries"] - 1}
process = CrawlerProcess(settings | TOLD.get("settings", {}))
process.crawl(Pages)
process.start()
print(json.dumps({"got": Pages.got, "seconds": (Pages.last or perf_counter()) - Pages.begun}))
