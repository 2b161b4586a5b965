"""Opens the URLs of its command line in Chromium, through at most three sessions; a page that is blocked, three times."""

import asyncio
import os
import sys
from urllib.parse import urlsplit

import hopline
from hopline.playwright import AsyncPoolContexts
from playwright.async_api import Error, async_playwright


async def main() -> None:
    async with (
        hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent,
        agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", quantity=0.5, protocol="http") as pool,
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=os.environ.get("HOPLINE_CHROMIUM")) as browser,
        AsyncPoolContexts(browser, pool) as contexts,
    ):
        for url in sys.argv[1:]:
            for _ in range(3):
                async with contexts.lease(urlsplit(url).hostname) as (lease, context):
                    page = await context.new_page()
                    try:
                        response = await page.goto(url)
                    except Error as error:
                        print(url, error.message, lease.observe(error))
                        continue
                    if response is not None and lease.observe(response) == "keep":
                        print(url, response.status)
                        break


asyncio.run(main())
