"""An adapter of requests that sends through a pool.

    import requests
    from hopline.requests import PoolAdapter

    with agent.open_pool("shop", size=3, use_with="requests", ...) as pool, requests.Session() as http:
        for prefix in ("https://", "http://"):
            http.mount(prefix, PoolAdapter(pool))
        page = http.get("https://shop.example/")

Each request has a lease of its own, until its body is read or closed.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import ProxyError
from urllib3.exceptions import ProtocolError, SSLError, TimeoutError
from urllib3.response import HTTPResponse

from ._through import KEPT, WAIT, Asked, Cookies, Exit, Exits, Sending, check_pool, through

if TYPE_CHECKING:
    from ._sync_pool import Lease, Pool

__all__ = ["PoolAdapter"]


class PoolAdapter(BaseAdapter):
    """An adapter for `requests.Session.mount`, for as many prefixes as you like. Its connections are closed with the session. The proxies
    of the session, of a request and of the environment are not looked at.

    Args:
        pool: A pool that an `AgentClient` opened.
        key: A key for a sticky session, for all requests of this adapter.
        wait: The seconds for which a request waits for a session.
        options: The options of an `HTTPAdapter` for each exit, such as `pool_maxsize`.
    """

    def __init__(self, pool: Pool, *, key: str | None = None, wait: float = WAIT, **options: Any) -> None:
        super().__init__()
        check_pool(pool, "Pool", "PoolAdapter")
        self._pool, self._key, self._wait = pool, key, wait
        self.exits, self.cookies = Exits[HTTPAdapter](lambda lease: HTTPAdapter(**options)), Cookies()

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends a request through a lease; a safe one that is blocked, through up to two others."""
        is_sent_once = not isinstance(request.body, str | bytes | None)
        asked = Asked(request.method or "", request.url or "", key=self._key, wait=self._wait, is_sent_once=is_sent_once)
        sending = _Sending(self, request, {"stream": stream, "timeout": timeout, "verify": verify, "cert": cert})
        response, lease = through(self._pool, asked, sending)
        # A digest login sends again by the connection of an answer, and is to come here.
        vars(response)["connection"] = self
        if lease is None:
            return response
        if not stream or vars(response)["_content_consumed"]:
            lease.release()
        else:
            vars(response.raw)["release_conn"] = _Released(response.raw, lease)
        return response

    def close(self) -> None:
        """Closes the connections."""
        for adapter in self.exits.clear():
            adapter.close()


class _Sending(Sending[Any, Response]):
    client_error = ProxyError

    def __init__(self, its: PoolAdapter, request: PreparedRequest, settings: dict[str, Any]) -> None:
        self._its, self._request, self._settings = its, request, settings

    def send(self, lease: Lease) -> Response:
        exit, old = self._its.exits.of(lease)
        if old is not None:
            old.close()
        if exit.settings is None:
            exit.settings = lease.proxy.for_requests()
        response = exit.connections.send(self._with_cookies(exit), **self._settings, **exit.settings)
        got = response.raw.headers.getlist("Set-Cookie")
        self._its.cookies.take(exit, self._request.url or "", response.status_code, response.headers.get("Location"), got)
        if not self._settings["stream"]:
            try:
                response.content  # noqa: B018 (the body is read here, where its failure is observed)
            except BaseException:
                response.close()
                raise
        return response

    def keep(self, answer: Response) -> None:
        if vars(answer)["_content_consumed"]:
            return
        raw, body = answer.raw, b""
        with suppress(Exception):  # a block remains one without its body
            body = raw.read(KEPT + 1, decode_content=False)
            raw.close()
        # Without its body an answer has no coding, either.
        body, headers = (body, raw.headers) if len(body) <= KEPT else (b"", None)
        answer.raw = HTTPResponse(
            BytesIO(body), headers, raw.status, reason=raw.reason, preload_content=False, decode_content=False, enforce_content_length=False
        )

    def drop(self, answer: Response) -> None:
        answer.close()

    def _with_cookies(self, exit: Exit[Any]) -> PreparedRequest:
        given = self._request.headers.get("Cookie")
        cookie = self._its.cookies.header(exit, self._request.url or "", given)
        if cookie == given:
            return self._request
        request = self._request.copy()
        request.headers.pop("Cookie", None)
        if cookie is not None:
            request.headers["Cookie"] = cookie
        return request


class _Released:
    """The function that urllib3 and requests call once a body is at its end or is closed. A body that everybody else has dropped is not kept."""

    def __init__(self, raw: Any, lease: Lease) -> None:
        self._raw, self._lease = weakref.ref(raw), lease

    def __call__(self) -> None:
        try:
            # urllib3 calls this on the way out of a read that failed.
            if isinstance(error := sys.exc_info()[1], ProtocolError | TimeoutError | SSLError):
                self._lease.observe(error)
            raw = self._raw()
            if raw is not None:
                type(raw).release_conn(raw)
        finally:
            self._lease.release()
