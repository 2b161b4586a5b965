"""Fetches the URLs of a file, one a line, through at most ten sessions: python program.py urls.txt pages.jsonl

Each page is a line of the second file. Killed at any moment and started again, the program fetches only what is missing there."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hopline
import httpx2
from hopline.httpx import AsyncPoolTransport
from rich.progress import Progress

WORKERS = 40
"""The most requests at a time: four a session."""


def kept(results: Path) -> set[str]:
    """The URLs that have a line. Half a line, which a kill has left, is cut off."""
    text = results.read_bytes() if results.exists() else b""
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        os.truncate(results, len(whole))
    return {json.loads(line)["url"] for line in whole.splitlines()}


async def page_of(http: httpx2.AsyncClient, url: str) -> str | None:
    """A page as a line of JSON. A block is repeated by the transport, on other exits; a failure is repeated here."""
    for _ in range(3):
        try:
            page = await http.get(url)
        except hopline.Unavailable:  # the pool has no session
            raise
        except httpx2.TransportError:
            continue
        if page.status_code not in (403, 429) and not page.is_server_error:
            return json.dumps({"url": url, "status": page.status_code, "text": page.text})
    return None


async def main(urls: Path, results: Path) -> None:
    wanted, done = dict.fromkeys(urls.read_text().split()), kept(results)
    missing = [url for url in wanted if url not in done]
    waiting: Iterator[str] = iter(missing)
    stopped: list[str] = []
    async with (
        hopline.AsyncAgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=40) as agent,
        agent.open_pool(
            "pages", size=10, session_type="dynamic", product_no="dynamic-world", protocol="http", leases_per_session=4
        ) as pool,
        httpx2.AsyncClient(transport=AsyncPoolTransport(pool), timeout=20) as http,
    ):
        with results.open("a") as file, Progress() as progress:
            bar = progress.add_task("pages", total=len(wanted), completed=len(wanted) - len(missing))

            async def worker() -> None:
                for url in waiting:  # one iterator for all of them
                    try:
                        line = await page_of(http, url)
                    except hopline.Unavailable as error:
                        stopped.append(str(error))
                        return
                    if line is not None:
                        file.write(line + "\n")
                        file.flush()
                        progress.advance(bar)

            async with asyncio.TaskGroup() as workers:
                for _ in range(WORKERS):
                    workers.create_task(worker())
    for why in stopped[:1]:
        print("stopped:", why)
    print(len(set(wanted) - kept(results)), "pages are missing")


asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
