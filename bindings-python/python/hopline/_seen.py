"""What a request through a session met, of whatever a program has at hand: a status, a word, a response or an exception of any HTTP
client. No HTTP client is imported: exceptions are known by their names."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeAlias

from ._errors import ask, invalid
from ._values import dumps

SeenWord: TypeAlias = Literal["captcha", "timeout", "block", "proxy", "target"]
"""What came in place of an answer.

- `captcha`: A page that asks for a captcha.
- `timeout`: No answer in time.
- `block`: A block that shows in another way.
- `proxy`: The proxy refused the request, or could not be reached.
- `target`: The target could not be reached, or failed in another way. It says nothing about the session.
"""


class _WithStatus(Protocol):
    @property
    def status(self) -> Any: ...


class _WithStatusCode(Protocol):
    @property
    def status_code(self) -> Any: ...


Seen: TypeAlias = int | SeenWord | BaseException | _WithStatus | _WithStatusCode
"""What a request through a session met: an HTTP status, a word, or the response or the exception of requests, httpx, aiohttp, urllib3 or
the standard library."""
_WORDS = ("captcha", "timeout", "block", "proxy", "target")
_ANSWERED = r"Tunnel connection failed: (\d{3})|^(\d{3}) "
"""What a proxy answered in place of the target, as the standard library and httpx say it."""
# By the packages that have them. What an HTTP client says of its proxy is that it could not be reached, or what it answered.
_PROXIES = (
    "requests.ProxyError",
    "urllib3.ProxyError",
    "httpx.ProxyError",
    "httpcore.ProxyError",
    "aiohttp.ClientProxyConnectionError",
    "aiohttp.ClientHttpProxyError",
    "socks.ProxyError",
    "socksio.ProtocolError",
    "python_socks.ProxyError",
)
_CONNECTS = (
    "requests.ConnectTimeout",
    "urllib3.ConnectTimeoutError",
    "httpx.ConnectTimeout",
    "aiohttp.ConnectionTimeoutError",
    "httpx.ConnectError",
    "builtins.ConnectionRefusedError",
    "socket.gaierror",
)
_TIMEOUTS = ("builtins.TimeoutError", "requests.Timeout", "urllib3.TimeoutError", "httpx.TimeoutException", "aiohttp.ServerTimeoutError")
_OF_THE_TARGET = ("ssl.SSLError", "aiohttp.ClientSSLError", "aiohttp.ClientConnectorError", "httpx.PoolTimeout")


def seen_text(seen: Seen) -> str:
    """What was seen, as the core is told it."""
    told = _seen(seen)
    return dumps(told if isinstance(told, str) else {"status": told})


def wait_ms(seen: object) -> int | None:
    """How long the target asks to wait, by the Retry-After of a response, or of the one that an exception was made of."""
    headers = getattr(seen, "headers", None) or getattr(getattr(seen, "response", None), "headers", None)
    try:
        told = {str(name).lower(): _text(value) for name, value in dict(headers or ()).items()}
    except (TypeError, ValueError):  # they are none
        return None
    if not told.get("retry-after"):
        return None
    answer = ask("retry_after", header=told["retry-after"], date=told.get("date", ""), now=round(time.time() * 1000))
    wait: int | None = answer["wait_ms"]
    return wait


def _text(value: object) -> str:
    """The value of a header; of one that came several times, all of them."""
    text = ", ".join(map(_text, value)) if isinstance(value, list | tuple) else value
    text = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    return text.encode("utf-8", "replace").decode()


def _seen(seen: object) -> int | str:
    if isinstance(seen, BaseException):
        return _raised(seen)
    for status in (seen, getattr(seen, "status_code", None), getattr(seen, "status", None)):
        if isinstance(status, int) and not isinstance(status, bool):
            return status
    if isinstance(seen, str) and seen in _WORDS:
        return seen
    known = ", ".join(f"`{word}`" for word in _WORDS)
    invalid("observe", "seen", f"must be an HTTP status, a response, an exception, or one of {known}")


def _raised(error: BaseException) -> int | str:
    """What an exception says. What it came of is looked at, too: an HTTP client wraps those of another one."""
    chain = list(_chain(error))
    names = {name for one in chain for name in _names(type(one))}
    # Over SOCKS: the proxy was not reached, refuses the credentials, or has answered that it can't reach the target.
    if not names.isdisjoint(("socks.SOCKS5AuthError", "socks.ProxyConnectionError")):
        return "proxy"
    if not names.isdisjoint(("socks.SOCKS5Error", "socks.SOCKS4Error")):
        return "target"
    for one in chain:
        own = _names(type(one))
        if own.isdisjoint(_PROXIES) and not str(one).startswith("Tunnel connection failed"):
            status = _status(one)
            if status is not None:
                return status
            continue
        said = re.search(_ANSWERED, str(one))
        answered = _status(one) or (said and int(said[1] or said[2]))
        if answered is not None:
            return "target" if answered >= 500 else "proxy"
        if "Proxy Server could not connect" in str(one):
            return "target"
    # What took too long was to connect to the proxy, unless the proxy itself connects, or TLS is spoken to the target already.
    is_beyond = any(name.startswith(("socks.", "socksio.")) for name in names) or any(_in_tls(one) for one in chain)
    if not names.isdisjoint(_OF_THE_TARGET) and names.isdisjoint(_PROXIES):
        return "target"
    if not names.isdisjoint(_TIMEOUTS) and (is_beyond or names.isdisjoint(_CONNECTS)):
        return "timeout"
    # A connection is made to the proxy only: it is the proxy that connects to the target.
    return "target" if names.isdisjoint((*_PROXIES, *_CONNECTS)) else "proxy"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    rest: list[object] = [error]
    while rest:
        one = rest.pop(0)
        if isinstance(one, BaseException) and id(one) not in seen:
            seen.add(id(one))
            yield one
            rest += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]


def _names(kind: type) -> set[str]:
    """The names of a class and of those that it is based on, each behind its package."""
    return {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in kind.__mro__}


def _in_tls(error: BaseException) -> bool:
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_name != "start_tls":
        at = at.tb_next
    return at is not None


def _status(error: BaseException) -> int | None:
    """The status of an exception that a response was made of."""
    for one in (error, getattr(error, "response", None)):
        for name in ("status", "status_code", "code"):
            status = getattr(one, name, None)
            if isinstance(status, int) and 100 <= status < 600:
                return status
    return None
