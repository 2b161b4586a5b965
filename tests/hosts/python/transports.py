"""Each HTTP client that the package takes, made as its own people make it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ssl import SSLContext, create_default_context
from typing import Any

import aiohttp
import httpx
import requests
import urllib3

TRUSTED = create_default_context()
"""Each client of httpx would load it anew, which takes a while."""


def trusting(ca: str | None) -> SSLContext:
    """A context that trusts an authority of one's own."""
    return create_default_context(cafile=ca) if ca else TRUSTED


SYNC = ["stdlib", "requests", "httpx", "urllib3", "callable"]
ASYNC = ["threads", "httpx", "aiohttp", "callable"]


@contextmanager
def sync_http(name: str) -> Iterator[Any]:
    match name:
        case "requests":
            with requests.Session() as session:
                yield session
        case "httpx":
            with httpx.Client(verify=TRUSTED) as client:
                yield client
        case "urllib3":
            with urllib3.PoolManager() as pool:
                yield pool
        case "callable":
            from hopline._http import transport_for_threads

            own = transport_for_threads(None)
            yield lambda request: own(request)
        case _:
            yield None


@asynccontextmanager
async def async_http(name: str) -> AsyncIterator[Any]:
    match name:
        case "httpx":
            # A pool of httpx has 100 connections unless it is told otherwise.
            async with httpx.AsyncClient(verify=TRUSTED, limits=httpx.Limits(max_connections=None)) as client:
                yield client
        case "aiohttp":
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                yield session
        case "callable":
            from hopline._http._choose import transport_for_tasks

            awaited = transport_for_tasks(None)

            async def send(request: Any) -> Any:
                return await awaited(request)

            yield send
        case _:
            yield None
