"""A Scrapy crawl, as a process of its own, since a reactor runs once: pages of a site, by the settings that the first argument has as JSON."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
import scrapy.downloadermiddlewares.cookies
from scrapy.crawler import CrawlerProcess
from tldextract import TLDExtract

TOLD: dict[str, Any] = json.loads(sys.argv[1])


class Shop(scrapy.Spider):
    """Fetches pages, and notes what came of each."""

    name = "shop"
    got: list[str] = []
    failed: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        """The pages."""
        for page in range(TOLD["pages"]):
            meta = {"cookiejar": page % TOLD["jars"]} if TOLD.get("jars") else {}
            method = "POST" if page == TOLD.get("post") else "GET"
            yield scrapy.Request(f"{TOLD['url']}/p{page}", method=method, errback=self.fail, meta=meta)

    def parse(self, response: Any) -> Iterator[Any]:
        """A page."""
        assert "no cookie" not in response.text
        self.got.append(response.url.rpartition("/")[2])
        # Nothing of the lease: what is here may be written to the disk.
        assert response.meta.get("proxy") == TOLD.get("proxy") and "Proxy-Authorization" not in response.request.headers
        yield from ()

    def fail(self, failure: Any) -> None:
        """A page that was given up."""
        self.failed.append(f"{failure.type.__name__}: {failure.value}")


SETTINGS: dict[str, Any] = {"ADDONS": {"hopline.scrapy.HoplineAddon": 500}, "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False}

if __name__ == "__main__":
    if "captcha" in TOLD:
        TOLD["settings"]["HOPLINE_POOL"]["blocked"] = lambda response: TOLD["captcha"] in response.text + str(response.headers.get("Location"))
    # Scrapy fetches a list of domains as soon as it has a cookie; this one comes with it.
    vars(scrapy.downloadermiddlewares.cookies)["_split_domain"] = TLDExtract(suffix_list_urls=(), include_psl_private_domains=True)
    process = CrawlerProcess(SETTINGS | TOLD["settings"])
    crawler = process.create_crawler(Shop)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    stats = {name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, (int, float, str))}
    print(json.dumps({"got": Shop.got, "failed": Shop.failed, "stats": stats}))
