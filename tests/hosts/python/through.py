"""HTTP clients whose requests go through a pool, as their own people make them; and a target that sets cookies, redirects, hangs and drips."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import curl_cffi
import hopline
import httpx
import httpx2
import requests
from curl_cffi.requests.exceptions import RequestException
from fleet import SHOP
from hopline.aiohttp import pool_session
from hopline.curl_cffi import AsyncPoolSession, PoolSession
from hopline.httpx import AsyncPoolTransport, PoolTransport
from hopline.requests import PoolAdapter
from sandbox import Sandbox

SYNC = ["httpx", "httpx2", "requests", "curl_cffi"]
ASYNC = ["async-httpx", "async-httpx2", "async-curl_cffi", "aiohttp"]
CLIENTS = [*SYNC, *ASYNC]
ERRORS: dict[str, type[Exception]] = {
    "httpx": httpx.TransportError,
    "httpx2": httpx2.TransportError,
    "requests": requests.ConnectionError,
    "curl_cffi": RequestException,
    "aiohttp": aiohttp.ClientError,
}
"""The errors that the users of each client catch."""


def error(name: str) -> type[Exception]:
    return ERRORS[name.removeprefix("async-")]


@dataclass
class Page:
    """An answer, whichever client it came by."""

    status: int
    text: str


@dataclass
class Through:
    """A client of a pool. Those of threads send in threads."""

    http: Any
    pool: Any
    send: Callable[..., Awaitable[Page]]
    """Takes a method, a URL, and what the client takes besides."""
    status: Callable[[], Awaitable[hopline.PoolStatus]]


@asynccontextmanager
async def through(name: str, site: Sandbox, size: int = 3, of_pool: Any = None, **options: Any) -> AsyncIterator[Through]:
    """A client of a pool of its own."""
    opening = ("pool-" + name, {"size": size, **SHOP, **(of_pool or {})})
    if name in SYNC:
        with ExitStack() as stack:
            agent = stack.enter_context(hopline.AgentClient(**site.account))
            pool = stack.enter_context(agent.open_pool(opening[0], **opening[1]))
            threads = stack.enter_context(ThreadPoolExecutor(100))
            http = stack.enter_context(sync_client(name, pool, site.ready["tls_ca"], options))
            run = asyncio.get_running_loop().run_in_executor
            yield Through(http, pool, lambda *told, **given: run(threads, lambda: send(http, *told, **given)), lambda: run(None, pool.status))
        return
    async with hopline.AsyncAgentClient(**site.account) as tasks, tasks.open_pool(opening[0], **opening[1]) as its:
        async with async_client(name, its, site.ready["tls_ca"], options) as http:
            yield Through(http, its, lambda *told, **given: send_async(name, http, *told, **given), its.status)


def sync_client(name: str, pool: hopline.Pool, ca: str, options: dict[str, Any]) -> Any:
    if name == "requests":
        session = requests.Session()
        session.verify, session.trust_env = ca, False  # requests prefers the environment's authorities
        for scheme in ("https://", "http://"):
            session.mount(scheme, PoolAdapter(pool, **options))
        return session
    if name == "curl_cffi":
        return PoolSession(pool, verify=ca, **options)
    transport = PoolTransport(pool, verify=ssl.create_default_context(cafile=ca), **options)
    if name == "httpx":
        return httpx.Client(transport=transport, follow_redirects=True)
    return httpx2.Client(transport=transport, follow_redirects=True)


def async_client(name: str, pool: hopline.AsyncPool, ca: str, options: dict[str, Any]) -> Any:
    if name == "aiohttp":
        return pool_session(pool, ssl=ssl.create_default_context(cafile=ca), **options)
    if name == "async-curl_cffi":
        return AsyncPoolSession(pool, verify=ca, **options)
    transport = AsyncPoolTransport(pool, verify=ssl.create_default_context(cafile=ca), **options)
    if name == "async-httpx":
        return httpx.AsyncClient(transport=transport, follow_redirects=True)
    return httpx2.AsyncClient(transport=transport, follow_redirects=True)


def send(http: Any, method: str, url: str, **given: Any) -> Page:
    answer = http.request(method, url, **{"timeout": 60, **given})
    return Page(answer.status_code, answer.text)


async def send_async(name: str, http: Any, method: str, url: str, **given: Any) -> Page:
    if name == "aiohttp":
        async with http.request(method, url, **given) as answer:
            return Page(answer.status, await answer.text())
    got = await http.request(method, url, **{"timeout": 60, **given})
    return Page(got.status_code, got.text)


class Target:
    """A site over plain HTTP.

    - `/cookie` sets a cookie that names the exit, and answers with the cookies that came.
    - `/start` sets one, too, and leads to `/checked`, which leads back as long as no such cookie comes.
    - `/captcha` is a page with a captcha for the first exit that asks for it with a query.
    - `/block` and `/big` are blocks, the second with a body of a few megabytes. `/broken` breaks off within its body.
    - `/login` wants a digest login. `/hang` never answers; `/drip` sends half of its body, and `/missing` a long one slowly, with the status 404.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str | None]] = []
        """The exit, the path and the cookies of each request."""
        self.over, first = threading.Event(), dict[str, str]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler) -> None:  # noqa: N805
                exit, cookies, asked = handler.client_address[0], handler.headers["Cookie"], handler.path.partition("?")[0]
                self.seen.append((exit, handler.path, cookies))
                if asked == "/hang":
                    self.over.wait(60)
                    return
                body = {"/cookie": cookies or "", "/big": "block " * 1_000_000, "/block": "a block", "/captcha": "captcha" if exit == first.setdefault(handler.path, exit) else "a page"}.get(asked, "a page")
                leads = {"/start": "/checked", "/checked": None if cookies and f"exit={exit}" in cookies else "/start"}.get(asked)
                is_refused = asked == "/login" and handler.headers["Authorization"] is None
                handler.send_response(302 if leads else 401 if is_refused else {"/missing": 404, "/big": 403, "/block": 403}.get(asked, 200))
                if is_refused:
                    handler.send_header("WWW-Authenticate", 'Digest realm="shop", nonce="1", qop="auth"')
                if leads:
                    handler.send_header("Location", leads)
                if asked in ("/cookie", "/start"):
                    handler.send_header("Set-Cookie", f"exit={exit}; Path=/")
                handler.send_header("Content-Length", str(len(body) * {"/drip": 2, "/missing": 1000, "/broken": 2}.get(asked, 1)))
                handler.end_headers()
                with suppress(OSError):  # of a client that wants no more of it
                    handler.wfile.write(body.encode())
                handler.close_connection = handler.close_connection or asked == "/broken"
                if asked == "/drip":
                    handler.wfile.flush()
                    self.over.wait(60)
                with suppress(OSError):  # curl breaks a stream off as its next part comes
                    while asked == "/missing" and not self.over.wait(0.05):
                        handler.wfile.write(b" ")

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://shop.localhost:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            self._server.shutdown()
            self._server.server_close()
