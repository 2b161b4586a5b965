"""Each crawler twice: over a plain list of proxies, as its people write that, and over a pool of Hopline's.

A crawl takes URLs, and returns the number of pages that came and the seconds that it took."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp
import curl_cffi
import hopline
import httpx
import requests
from crawlee import ConcurrencySettings
from crawlee.crawlers import HttpCrawler
from crawlee.http_clients import ImpitHttpClient
from crawlee.proxy_configuration import ProxyConfiguration
from crawlee.storage_clients import MemoryStorageClient
from hopline.aiohttp import pool_session
from hopline.crawlee import HoplineHttpClient
from hopline.curl_cffi import AsyncPoolSession
from hopline.httpx import AsyncPoolTransport
from hopline.requests import PoolAdapter

SESSIONS, WORKERS, TRIES = 3, 6, 3
POOL: dict[str, Any] = {"name": "shop", "size": SESSIONS, "leases_per_session": WORKERS // SESSIONS}
BUY: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "quantity": 0.5, "protocol": "http"}

Crawl = Callable[[list[str]], Awaitable[tuple[int, float]]]


@dataclass
class Place:
    """The service and its target site."""

    account: dict[str, str]
    ca: str
    folder: Path

    @property
    def tls(self) -> ssl.SSLContext:
        """A context that trusts the site."""
        return ssl.create_default_context(cafile=self.ca)

    @property
    def client(self) -> dict[str, Any]:
        """The options of a client of Hopline."""
        return {**self.account, "store": hopline.FolderStore(self.folder), "daily_cap_usd": 100}


async def in_tasks(urls: list[str], fetch: Callable[[str], Awaitable[bool]]) -> tuple[int, float]:
    """Fetches pages, several at a time."""
    waiting, got, begun = iter(urls), 0, perf_counter()

    async def worker() -> None:
        nonlocal got
        for url in waiting:
            is_good = await fetch(url)
            got += is_good

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(worker())
    return got, perf_counter() - begun


def of_list(proxies: Iterable[Any], get: Callable[[Any, str], Awaitable[int]], tries: int = TRIES) -> Crawl:
    """A crawl by proxies of a list in turn. A page that is blocked is tried again by the next one."""
    turn = cycle(proxies)

    async def fetch(url: str) -> bool:
        for _ in range(tries):
            if await get(next(turn), url) == 200:
                return True
        return False

    return lambda urls: in_tasks(urls, fetch)


@asynccontextmanager
async def httpx_list(place: Place, proxies: list[str]) -> AsyncIterator[Crawl]:
    """A client of httpx for each proxy."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(httpx.AsyncClient(proxy=one, verify=place.tls, timeout=60)) for one in proxies]

        async def get(client: httpx.AsyncClient, url: str) -> int:
            return (await client.get(url)).status_code

        yield of_list(clients, get)


@asynccontextmanager
async def httpx_pool(place: Place, pool: hopline.AsyncPool) -> AsyncIterator[Crawl]:
    """One client of httpx over the pool."""
    async with httpx.AsyncClient(transport=AsyncPoolTransport(pool, verify=place.tls), timeout=60) as http:

        async def fetch(url: str) -> bool:
            return (await http.get(url)).status_code == 200

        yield lambda urls: in_tasks(urls, fetch)


@asynccontextmanager
async def requests_list(place: Place, proxies: list[str]) -> AsyncIterator[Crawl]:
    """A session of requests for each proxy, and threads."""
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(WORKERS))
        clients = [session_of_requests(stack, place, {"http": one, "https": one}) for one in proxies]
        yield of_list(clients, lambda client, url: in_thread(threads, client, url))


@asynccontextmanager
async def requests_pool(place: Place, pool: hopline.Pool) -> AsyncIterator[Crawl]:
    """One session of requests over the pool, and threads."""
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(WORKERS))
        http = session_of_requests(stack, place, {})
        http.mount("https://", PoolAdapter(pool))

        async def fetch(url: str) -> bool:
            return await in_thread(threads, http, url) == 200

        yield lambda urls: in_tasks(urls, fetch)


def session_of_requests(stack: ExitStack, place: Place, proxies: dict[str, str]) -> requests.Session:
    """A session of requests that trusts the site."""
    http = stack.enter_context(requests.Session())
    http.verify, http.trust_env, http.proxies = place.ca, False, proxies  # type: ignore[assignment]
    return http


def in_thread(threads: ThreadPoolExecutor, http: requests.Session, url: str) -> Awaitable[int]:
    """The status of a page, whose client works in threads."""
    return asyncio.get_running_loop().run_in_executor(threads, lambda: http.get(url, timeout=60).status_code)


@asynccontextmanager
async def curl_list(place: Place, proxies: list[str]) -> AsyncIterator[Crawl]:
    """One session of curl_cffi, with a proxy a request."""
    async with curl_cffi.AsyncSession(verify=place.ca, timeout=60) as http:

        async def get(proxy: str, url: str) -> int:
            return (await http.get(url, proxy=proxy)).status_code

        yield of_list(proxies, get)


@asynccontextmanager
async def curl_pool(place: Place, pool: hopline.AsyncPool) -> AsyncIterator[Crawl]:
    """One session of curl_cffi over the pool."""
    async with AsyncPoolSession(pool, verify=place.ca, timeout=60) as http:

        async def fetch(url: str) -> bool:
            return (await http.get(url)).status_code == 200

        yield lambda urls: in_tasks(urls, fetch)


@asynccontextmanager
async def aiohttp_list(place: Place, proxies: list[str]) -> AsyncIterator[Crawl]:
    """One session of aiohttp, with a proxy a request."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=place.tls)) as http:

        async def get(proxy: str, url: str) -> int:
            async with http.get(url, proxy=proxy) as answer:
                await answer.read()
                return answer.status

        yield of_list(proxies, get)


@asynccontextmanager
async def aiohttp_pool(place: Place, pool: hopline.AsyncPool) -> AsyncIterator[Crawl]:
    """One session of aiohttp over the pool."""
    async with pool_session(pool, ssl=place.tls) as http:

        async def fetch(url: str) -> bool:
            async with http.get(url) as answer:
                await answer.read()
                return answer.status == 200

        yield lambda urls: in_tasks(urls, fetch)


@asynccontextmanager
async def crawlee_list(place: Place, proxies: list[str]) -> AsyncIterator[Crawl]:
    """Crawlee with a list of proxies of its own."""
    options = {"max_session_rotations": TRIES - 1, "proxy_configuration": ProxyConfiguration(proxy_urls=list(proxies))}
    yield lambda urls: by_crawlee(urls, ImpitHttpClient(verify=False), options)


@asynccontextmanager
async def crawlee_pool(place: Place, pool: hopline.AsyncPool) -> AsyncIterator[Crawl]:
    """Crawlee over the pool."""
    yield lambda urls: by_crawlee(urls, HoplineHttpClient(pool, lambda: ImpitHttpClient(verify=False)), {})


async def by_crawlee(urls: list[str], client: Any, options: dict[str, Any]) -> tuple[int, float]:
    """A crawl of Crawlee's, without the second that it takes to end."""
    got, begun, last = 0, 0.0, 0.0
    crawler = HttpCrawler(
        http_client=client,
        concurrency_settings=ConcurrencySettings(desired_concurrency=WORKERS, max_concurrency=WORKERS),
        storage_client=MemoryStorageClient(),
        configure_logging=False,
        **options,
    )

    @crawler.router.default_handler
    async def page(context: Any) -> None:
        nonlocal got, last
        got, last = got + 1, perf_counter()

    begun = perf_counter()
    await crawler.run(urls)
    return got, (last or perf_counter()) - begun


@asynccontextmanager
async def scrapy_list(place: Place, proxies: list[str]) -> AsyncIterator[Crawl]:
    """Scrapy with a middleware that gives each request a proxy."""
    yield lambda urls: by_scrapy(urls, {"proxies": proxies})


@asynccontextmanager
async def scrapy_pool(place: Place, pool: None) -> AsyncIterator[Crawl]:
    """Scrapy with Hopline's add-on."""
    client = {**place.account, "store": str(place.folder), "daily_cap_usd": 100}
    settings = {"ADDONS": {"hopline.scrapy.HoplineAddon": 500}, "HOPLINE_POOL": POOL | BUY, "HOPLINE_CLIENT": client}
    yield lambda urls: by_scrapy(urls, {"settings": settings})


async def by_scrapy(urls: list[str], told: dict[str, Any]) -> tuple[int, float]:
    """A crawl of Scrapy's in a process of its own, from its first request on."""
    told = {"urls": urls, "workers": WORKERS, "tries": TRIES, **told}
    run = [sys.executable, str(Path(__file__).with_name("scrapy_crawl.py"))]
    done = await asyncio.to_thread(subprocess.run, run, input=json.dumps(told), stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    return told["got"], told["seconds"]


@asynccontextmanager
async def ports(place: Place, sessions: list[hopline.AsyncOpenSession]) -> AsyncIterator[Crawl]:
    """httpx through a port for each session. A block rotates the session, and the client has new connections."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(session.proxy.on_loopback()) for session in sessions]
        exits = [Exit(session, url, place) for session, url in zip(sessions, urls, strict=True)]
        yield of_list(exits, Exit.get, 4 * TRIES)
        for exit in exits:
            await exit.http.aclose()


class Exit:
    """A session with its port, and the client of its exit."""

    def __init__(self, session: hopline.AsyncOpenSession, port: str, place: Place) -> None:
        self._session, self._port, self._tls, self._lock = session, port, place.tls, asyncio.Lock()
        self.http = self._connect()

    def _connect(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(proxy=self._port, verify=self._tls, timeout=60)

    async def get(self, url: str) -> int:
        """The status of a page; 0 if a rotation came between."""
        generation = self._session.generation
        try:
            status = (await self.http.get(url)).status_code
        except httpx.TransportError:
            return 0
        if status != 200:
            async with self._lock:
                if self._session.generation == generation:
                    await self._session.rotate("http_403")
                    self.http = self._connect()  # the old one is closed once its last request has ended
        return status


NAMES = ["httpx", "requests", "curl_cffi", "aiohttp", "Scrapy", "Crawlee", "the loopback port, with httpx"]
LISTS: dict[str, Any] = dict(zip(NAMES, [httpx_list, requests_list, curl_list, aiohttp_list, scrapy_list, crawlee_list, httpx_list], strict=True))
POOLS: dict[str, Any] = dict(zip(NAMES, [httpx_pool, requests_pool, curl_pool, aiohttp_pool, scrapy_pool, crawlee_pool, ports], strict=True))


@asynccontextmanager
async def listed(name: str, place: Place) -> AsyncIterator[Crawl]:
    """A crawler with a list of proxies."""
    async with hopline.AsyncAgentClient(**place.account) as agent:
        sessions = [await agent.open_session(**BUY, credentials=True, keep=True) for _ in range(SESSIONS)]
        proxies = [session.proxy.full_url.reveal() for session in sessions if session.proxy.full_url]
        async with LISTS[name](place, proxies) as crawl:
            yield crawl


@asynccontextmanager
async def pooled(name: str, place: Place) -> AsyncIterator[Crawl]:
    """The same crawler over a pool, or over sessions of Hopline's where it is about one."""
    async with AsyncExitStack() as stack:
        over: Any = None
        if name == "requests":
            over = stack.enter_context(stack.enter_context(hopline.AgentClient(**place.client)).open_pool(**POOL | BUY))
        elif name != "Scrapy":
            agent = await stack.enter_async_context(hopline.AsyncAgentClient(**place.client))
            if POOLS[name] is ports:
                over = [await agent.open_session(**BUY, credentials=True, keep=True) for _ in range(SESSIONS)]
            else:
                over = await stack.enter_async_context(agent.open_pool(**POOL | BUY))
        yield await stack.enter_async_context(POOLS[name](place, over))
