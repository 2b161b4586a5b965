"""Fetches the URLs of its command line with aiohttp, all at once, through at most three sessions."""

import asyncio
import sys

import aiohttp
import hopline
from hopline.aiohttp import pool_session


async def main(urls: list[str]) -> None:
    async with (
        hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=40) as agent,
        agent.open_pool("shop", size=3, session_type="dynamic", product_no="dynamic-world", protocol="http", use_with="aiohttp") as pool,
        pool_session(pool) as http,
    ):

        async def fetch(url: str) -> str:
            try:
                async with http.get(url) as page:
                    return f"{url} {page.status}"
            except aiohttp.ClientError as error:  # also where the pool has no session
                return f"{url} failed: {error}"

        print(*await asyncio.gather(*map(fetch, urls)), sep="\n")


asyncio.run(main(sys.argv[1:]))
