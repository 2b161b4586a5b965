"""Sessions of curl_cffi that send through a pool.

    from hopline.curl_cffi import PoolSession

    with agent.open_pool("shop", size=3, use_with="curl", ...) as pool, PoolSession(pool, impersonate="chrome") as http:
        page = http.get("https://shop.example/")

Each request has a lease of its own, with all its redirects, until its body has come. A stream that is not closed has it for ten minutes at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import wait
from threading import Timer
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urljoin

import curl_cffi
from curl_cffi.requests.exceptions import ProxyError, RequestException
from curl_cffi.requests.streams import STREAM_END

from ._errors import misuse
from ._through import KEEPING, LONGEST, WAIT, Asked, AsyncSending, Exits, Sending, check_pool, through, through_async

if TYPE_CHECKING:
    from curl_cffi.requests import Response

    from ._async_pool import AsyncLease, AsyncPool
    from ._sync_pool import Lease, Pool

    _Session = curl_cffi.Session[Response]
    _AsyncSession = curl_cffi.AsyncSession[Response]
else:
    _Session, _AsyncSession = curl_cffi.Session, curl_cffi.AsyncSession

__all__ = ["AsyncPoolSession", "PoolSession"]


class PoolSession(_Session):
    """A `curl_cffi.Session` whose requests go through a pool. Each exit has a connection and cookies of its own, and begins with the cookies
    that this session has by then.

    Args:
        pool: A pool that an `AgentClient` opened.
        key: A key for a sticky session, for all requests of this one.
        wait: The seconds for which a request waits for a session.
        options: The options of a `curl_cffi.Session`, such as `impersonate` and `verify`, but for proxies.
    """

    def __init__(self, pool: Pool, *, key: str | None = None, wait: float = WAIT, **options: Any) -> None:
        check_pool(pool, "Pool", "PoolSession")
        _check(options)
        super().__init__(**options)
        self._pool, self._key, self._wait = pool, key, wait
        own = {**options, "use_thread_local_curl": False}
        self._exits = Exits[_Sessions](lambda lease: _Sessions(self, _through(lease, own)))

    def request(self, method: Any, url: str, *more: Any, **given: Any) -> Any:
        """Sends a request through a lease; a safe one that is blocked, through up to two others."""
        _check(given)
        self._check_session_closed()
        sending = _Sending(self._exits, (method, url, *more), given)
        response, lease = through(self._pool, _asked(self, method, url, more, given), sending)
        _release(response, response.stream_task, lease, _later)
        _raise_for_status(self, response)
        return response

    def ws_connect(self, *arguments: Any, **given: Any) -> NoReturn:
        """Refuses, since it would not go through the pool."""
        _no_websockets()

    def close(self) -> None:
        """Closes the connections."""
        for sessions in self._exits.clear():
            sessions.close()
        super().close()


class AsyncPoolSession(_AsyncSession):
    """A `curl_cffi.AsyncSession` whose requests go through a pool that an `AsyncAgentClient` opened."""

    def __init__(self, pool: AsyncPool, *, key: str | None = None, wait: float = WAIT, **options: Any) -> None:
        check_pool(pool, "AsyncPool", "AsyncPoolSession")
        _check(options)
        super().__init__(**options)
        self._pool, self._key, self._wait = pool, key, wait
        self._exits = Exits[Any](lambda lease: _alike(self, curl_cffi.AsyncSession(**_through(lease, options))))

    async def request(self, method: Any, url: str, *more: Any, **given: Any) -> Any:
        """Sends a request through a lease; a safe one that is blocked, through up to two others."""
        _check(given)
        self._check_session_closed()
        sending = _AsyncSending(self._exits, (method, url, *more), given)
        response, lease = await through_async(self._pool, _asked(self, method, url, more, given), sending)
        _release(response, response.astream_task, lease, asyncio.get_running_loop().call_later)
        _raise_for_status(self, response)
        return response

    def ws_connect(self, *arguments: Any, **given: Any) -> NoReturn:
        """Refuses, since it would not go through the pool."""
        _no_websockets()

    async def close(self) -> None:
        """Closes the connections."""
        for session in self._exits.clear():
            await session.close()
        await super().close()


class _Sessions:
    """The sessions of one exit: more than one if it has several leases at a time, since a handle of curl is for one thread at a time."""

    def __init__(self, its: PoolSession, options: dict[str, Any]) -> None:
        self._options = options
        self._first = _alike(its, curl_cffi.Session(**options))
        self._idle, self._is_closed = [self._first], False

    def take(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            session = _alike(self._first, curl_cffi.Session(**self._options))
            session._cookies = self._first._cookies
            return session

    def give_back(self, session: Any) -> None:
        self._idle.append(session)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()


class _Sending(Sending[Any, Any]):
    client_error = ProxyError

    def __init__(self, exits: Exits[_Sessions], request: tuple[Any, ...], given: dict[str, Any]) -> None:
        self._exits, self._request, self._given = exits, request, given

    def send(self, lease: Lease) -> Any:
        exit, old = self._exits.of(lease)
        if old is not None:
            old.close()
        session = exit.connections.take()
        try:
            return session.request(*self._request, **self._given)
        finally:
            exit.connections.give_back(session)

    def keep(self, answer: Any) -> None:
        if answer.stream_task is not None and wait({answer.stream_task}, KEEPING).not_done:
            _empty(answer)

    def drop(self, answer: Any) -> None:
        answer.close()


class _AsyncSending(AsyncSending[Any, Any]):
    client_error = ProxyError

    def __init__(self, exits: Exits[Any], request: tuple[Any, ...], given: dict[str, Any]) -> None:
        self._exits, self._request, self._given = exits, request, given

    async def send(self, lease: AsyncLease) -> Any:
        exit, old = self._exits.of(lease)
        if old is not None:
            await old.close()
        return await exit.connections.request(*self._request, **self._given)

    async def keep(self, answer: Any) -> None:
        if answer.astream_task is not None and (await asyncio.wait({answer.astream_task}, timeout=KEEPING))[1]:
            _empty(answer)

    async def drop(self, answer: Any) -> None:
        _break_off(answer)  # `aclose` would wait for all of the body


def _through(lease: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a session for one exit, around which the environment's list of hosts without a proxy leads nobody."""
    curl = {**(options.get("curl_options") or {}), curl_cffi.CurlOpt.NOPROXY: ""}
    return {**options, "proxy": lease.proxy.url().reveal(), "curl_options": curl, "raise_for_status": False}


def _alike(its: Any, session: Any) -> Any:
    """A session for one exit, which has the headers of the program's own and begins with its cookies."""
    session.headers = its.headers
    session.cookies.update(its.cookies)
    return session


def _asked(its: Any, method: str, url: str, more: tuple[Any, ...], given: dict[str, Any]) -> Asked:
    bodies = [*more[1:3], given.get("data"), given.get("content")]
    is_sent_once = any(not isinstance(body, str | bytes | dict | list | tuple | None) for body in bodies) or given.get("multipart") is not None
    return Asked(method, urljoin(its.base_url or "", url), key=its._key, wait=its._wait, is_sent_once=is_sent_once)


def _release(response: Any, streaming: Any, lease: Any, later: Callable[[float, Callable[[], None]], Any]) -> None:
    """Gives a lease back: that of a stream once its body has come or is closed, which curl does in another thread or task. Nothing tells that a
    stream was dropped, so it is broken off after ten minutes.
    """
    if lease is None:
        return
    if streaming is None:
        lease.release()
        return

    _observe(response, lease)

    def give_up() -> None:
        _break_off(response)
        lease.release()

    late = later(LONGEST, give_up)

    def end(_: Any) -> None:
        late.cancel()
        lease.release()

    streaming.add_done_callback(end)


def _observe(response: Any, lease: Any) -> None:
    """Observes the failure of a stream's body, which curl's thread or task puts behind the parts that came."""
    parts, put = response.queue, response.queue.put_nowait
    seen: list[object] = []

    def look(part: object) -> None:
        if isinstance(part, RequestException) and not seen and not response.quit_now.is_set():
            seen.append(part)
            lease.observe(part)

    def put_seen(part: object) -> None:
        look(part)
        put(part)

    parts.put_nowait = put_seen
    for part in list(parts.queue if hasattr(parts, "queue") else parts._queue):
        look(part)


def _empty(response: Any) -> None:
    """Breaks a stream off, and leaves nothing of its body."""
    _break_off(response)
    response.queue = type(response.queue)()
    response.queue.put_nowait(STREAM_END)


def _later(seconds: float, do: Callable[[], None]) -> Timer:
    timer = Timer(seconds, do)
    timer.daemon = True
    timer.start()
    return timer


def _break_off(response: Any) -> None:
    """Ends a stream whose body nobody reads."""
    if response.quit_now is not None:
        response.quit_now.set()


def _raise_for_status(its: Any, response: Any) -> None:
    if not its.raise_for_status:
        return
    try:
        response.raise_for_status()
    except BaseException:
        _break_off(response)
        raise


def _check(given: dict[str, Any]) -> None:
    for name in ("proxy", "proxies", "proxy_auth", "curl", "async_curl", "curl_share"):
        if given.get(name) is not None:
            raise TypeError(f"the pool chooses the proxy and the connection of each request: leave `{name}` out")


def _no_websockets() -> NoReturn:
    misuse("ws_connect", "a web socket would not go through the pool; acquire a lease, and give its proxy to a session of your own")
