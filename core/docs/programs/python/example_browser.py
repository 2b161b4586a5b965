"""Crawls a site whose pages need a browser, from the address of its first page: python program.py https://shop.example/ 100

Links to the same site are followed, up to so many pages; titles and links go to site.jsonl. Three pages are open at a time, each through a session
of its own."""

import asyncio
import json
import os
import sys
from urllib.parse import urldefrag, urlsplit

import hopline
from hopline.playwright import AsyncPoolContexts
from playwright.async_api import Error, async_playwright

ATTEMPTS = 3
MARK = "Are you a robot?"
"""The words of the site's captcha, which comes with status 200."""


async def crawl(contexts: AsyncPoolContexts, first: str, most: int) -> None:
    host, seen = urlsplit(first).netloc, {first}
    waiting: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    waiting.put_nowait((first, 1))

    async def visit(url: str, attempt: int) -> None:
        """Opens a page, and notes its links. A page that is blocked or fails is put at the end, for another exit."""
        async with contexts.lease(urlsplit(url).hostname) as (lease, context):
            page = await context.new_page()
            try:
                response = await page.goto(url)
                advice = lease.observe("captcha" if MARK in await page.content() else response or 200)
                title = await page.title()
                links: list[str] = await page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
            except Error as error:
                print(url, error.message.splitlines()[0], lease.observe(error))
                advice, title, links = "give_back", "", []
        if advice != "keep":
            if attempt < ATTEMPTS:
                waiting.put_nowait((url, attempt + 1))
            return
        with open("site.jsonl", "a") as file:
            file.write(json.dumps({"url": url, "title": title, "links": links}) + "\n")
        for link in links:
            link = urldefrag(link).url
            if urlsplit(link).netloc == host and link not in seen and len(seen) < most:
                seen.add(link)
                waiting.put_nowait((link, 1))

    async def worker() -> None:
        while True:
            url, attempt = await waiting.get()
            await visit(url, attempt)
            waiting.task_done()

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(worker()) for _ in range(3)]
        await waiting.join()
        for task in workers:
            task.cancel()
    print(len(seen), "pages")


async def main() -> None:
    async with (
        hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent,
        agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", quantity=0.5, protocol="http") as pool,
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=os.environ.get("HOPLINE_CHROMIUM")) as browser,
        AsyncPoolContexts(browser, pool) as contexts,
    ):
        await crawl(contexts, sys.argv[1], int(sys.argv[2]))


asyncio.run(main())
