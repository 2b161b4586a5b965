"""How people fetch a page through a session's proxy, with each HTTP client, and what the core is told of it."""

import asyncio
import io
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import curl_cffi.requests
import hopline
import httpx
import httpx2
import impit
import pycurl
import requests
import urllib3
from aiohttp_socks import ProxyConnector
from hopline._seen import seen_text

By = Callable[[str, hopline.Proxy, float], Any]
"""Fetches a URL through a proxy, within some seconds."""


def by_requests(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, **proxy.for_requests(), timeout=seconds)


def by_httpx(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    with httpx.Client(**proxy.for_httpx(), trust_env=False, timeout=seconds) as client:
        return client.get(url)


def by_aiohttp(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    async def get() -> Any:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session, session.get(url, **proxy.for_aiohttp()) as answer:
            await answer.read()
            return answer

    return asyncio.run(get())


def by_urllib3(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    assert proxy.username and proxy.password
    login = urllib3.make_headers(proxy_basic_auth=f"{proxy.username.reveal()}:{proxy.password.reveal()}")
    with urllib3.ProxyManager(f"http://{proxy.host}:{proxy.port}", proxy_headers=login) as pool:
        return pool.request("GET", url, timeout=seconds, retries=False)


def by_urllib3_repeating(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    assert proxy.username and proxy.password
    login = urllib3.make_headers(proxy_basic_auth=f"{proxy.username.reveal()}:{proxy.password.reveal()}")
    with urllib3.ProxyManager(f"http://{proxy.host}:{proxy.port}", proxy_headers=login) as pool:
        return pool.request("GET", url, timeout=seconds, retries=1)


def by_urllib(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    told = proxy.url().reveal()
    return urllib.request.build_opener(urllib.request.ProxyHandler({"http": told, "https": told})).open(url, timeout=seconds)


def by_httpx_in_a_task(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    async def get() -> Any:
        async with httpx.AsyncClient(**proxy.for_httpx(), trust_env=False, timeout=seconds) as client:
            return await client.get(url)

    return asyncio.run(get())


def by_httpx2(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    with httpx2.Client(proxy=proxy.url().reveal().replace("socks5h:", "socks5:"), trust_env=False, timeout=seconds) as client:
        return client.get(url)


def by_aiohttp_socks(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    async def get() -> Any:
        connector = ProxyConnector.from_url(proxy.url().reveal().replace("socks5h:", "socks5:"), rdns=True)
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=seconds))
        async with session, session.get(url) as answer:
            await answer.read()
            return answer

    return asyncio.run(get())


def by_curl_cffi(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    return curl_cffi.requests.get(url, proxy=proxy.url().reveal(), timeout=seconds)


def by_pycurl(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    curl = pycurl.Curl()
    for option, value in ((curl.URL, url), (curl.PROXY, proxy.url().reveal()), (curl.TIMEOUT_MS, int(seconds * 1000)), (curl.WRITEDATA, io.BytesIO())):
        curl.setopt(option, value)
    curl.perform()
    return curl.getinfo(curl.RESPONSE_CODE)


def by_impit(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    return impit.Client(proxy=proxy.url().reveal().replace("socks5h:", "socks5:"), timeout=seconds).get(url)


HTTP = [by_requests, by_httpx, by_aiohttp, by_urllib3, by_urllib3_repeating, by_urllib]
BOTH = [by_requests, by_httpx, by_httpx_in_a_task, by_httpx2, by_aiohttp_socks, by_curl_cffi, by_pycurl, by_impit]
EACH = [("http", by) for by in {*HTTP, *BOTH}] + [("socks5", by) for by in BOTH]
EACH.sort(key=lambda each: (each[0], each[1].__name__))
"""The protocols that each of them speaks."""


def seen_by(by: By, url: str, proxy: hopline.Proxy, seconds: float = 30) -> str:
    """The outcome of a request as the core is told."""
    try:
        return seen_text(by(url, proxy, seconds))
    except Exception as error:
        return seen_text(error)
