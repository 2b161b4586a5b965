"""A session's proxy in the formats of HTTP clients. The formats come from the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from ._errors import ask, invalid
from ._told import Invalid
from ._value import Value, field
from ._values import UNSET, Secret

if TYPE_CHECKING:
    from ._port import Loopback
    from ._types import Proxy

UseWith: TypeAlias = Literal["requests", "httpx", "httpx2", "aiohttp", "curl_cffi", "playwright", "curl"]
"""The HTTP client that a session's proxy is for."""
CHOSEN_PROTOCOL = "http"
"""The protocol of what is bought for an HTTP client where none is named."""
_SOCKS_BY = {"requests": "socks", "httpx": "socksio", "httpx2": "socksio"}
"""The package by which an HTTP client supports SOCKS5."""
_ALIKE = {"httpx2": "httpx", "curl_cffi": "curl"}
"""The clients that the core knows under the names of others, which take the same proxies."""


_SECRETS = ("username", "password", "full_url")


class Settings(dict[str, Any]):
    """Keyword arguments for an HTTP client. They hold the password, so they print nothing."""

    def __repr__(self) -> str:
        return "[redacted]"

    __str__ = __repr__


class Proxies(Settings):
    """The keyword argument `proxies`. Given as `proxies=…` in place of `**…`, it is read as the mapping in it: HTTP clients look up `http`
    and `https` there, and would go without a proxy where they find none.
    """

    def items(self) -> Any:
        return self["proxies"].items()

    def get(self, key: str, default: Any = None, /) -> Any:
        return self["proxies"].get(key, super().get(key, default))


class Origin(Protocol):
    """The lease or session that a proxy is of."""

    def loopback(self, proxy: Proxy, port: int) -> Loopback:
        """Opens a port that leads through it for as long as it lasts."""
        ...


class Reachable(Value):
    """The methods of a proxy."""

    _origin: Origin | None = field(init=False, repr=False, compare=False)

    if TYPE_CHECKING:
        host: str | None
        port: int | None
        protocol: Any
        username: Secret | None
        password: Secret | None
        full_url: Secret | None
    else:

        def __init__(self, **members: Any) -> None:
            # A secret that a program gives as a plain text does not print, either.
            secrets = {name: Secret(members[name]) for name in _SECRETS if isinstance(members.get(name), str)}
            super().__init__(**{**members, **secrets})

    def url(self) -> Secret:
        """The proxy as a URL, credentials included and percent-encoded. `socks5h` means that the proxy also looks names up."""
        return Secret(self._told("any")["url"])

    def for_requests(self) -> Settings:
        """For requests: `requests.get(url, **proxy.for_requests())`. SOCKS5 needs `pip install hopline[socks]`."""
        url = self._told("requests")["url"]
        return Proxies(proxies=Settings(http=url, https=url))

    def for_httpx(self) -> Settings:
        """For httpx: `httpx.Client(**proxy.for_httpx())`. SOCKS5 needs `pip install hopline[socks]`."""
        return Settings(proxy=self._told("httpx")["url"])

    def for_aiohttp(self) -> Settings:
        """For aiohttp: `session.get(url, **proxy.for_aiohttp())`. aiohttp supports only HTTP proxies."""
        return Settings(proxy=self._told("aiohttp")["url"])

    def for_playwright(self) -> Settings:
        """For Playwright: `browser.new_context(**proxy.for_playwright())`. Playwright logs in only to HTTP proxies."""
        told = self._told("playwright")
        return Settings(proxy=Settings(server=told["server"], username=told["username"], password=told["password"]))

    def for_curl(self) -> Secret:
        """For curl: pass it to the standard input of `curl --config -`. As an argument, every user of the machine could read it."""
        return Secret(self._told("curl")["curl"])

    def on_loopback(self, port: int = 0) -> Loopback:
        """Opens a port on 127.0.0.1 that needs no login, for Selenium, wget and whatever else can't log in to a proxy:
        `with lease.proxy.on_loopback() as url`. HTTP CONNECT, plain HTTP and SOCKS5 all lead through the session; the port of a lease closes
        with its lease, and after a rotation the port of a session closes the connections of the exit before.

        Args:
            port: The port's number. Default: any free one.
        """
        origin = getattr(self, "_origin", None)
        if origin is not None:
            opened: Loopback = origin.loopback(self, port)
            return opened
        from ._port import of_proxy

        return of_proxy(self, port)  # type: ignore[arg-type]

    def _told(self, client: str) -> Settings:
        proxy = {name: getattr(self, name) for name in ("host", "port", "protocol", "username", "password", "full_url")}
        told = Settings(ask("proxy", client=client, proxy=proxy))
        _check_package("proxy", client, told["scheme"])
        return told


def of(origin: Origin, proxy: Proxy) -> Proxy:
    """Returns a proxy that knows the lease or session that it is of."""
    object.__setattr__(proxy, "_origin", origin)
    return proxy


def in_core(client: str) -> str:
    """The name by which the core knows an HTTP client."""
    return _ALIKE.get(client, client)


def check_use_with(operation: str, params: Mapping[str, Any], client: UseWith | None) -> None:
    """Refuses, before anything is bought, sessions whose proxies the named client can't use."""
    if client is None:
        return
    if client not in get_args(UseWith):
        from difflib import get_close_matches

        likely = get_close_matches(str(client), get_args(UseWith), n=1)
        meant = f" (did you mean `{likely[0]}`?)" if likely else ""
        invalid(operation, "use_with", f"must be one of {', '.join(f'`{known}`' for known in get_args(UseWith))}{meant}")
    named = params.get("protocol")
    protocol = CHOSEN_PROTOCOL if named is None or named is UNSET else named
    try:
        scheme = ask("use_with", client=in_core(client), protocol=protocol).get("scheme")
    except Invalid as error:
        # The core names the operation that buys one session.
        refused = Invalid(f"{operation}: {error.what}", **{**error._fields, "operation": operation})
    else:
        return _check_package(operation, client, scheme)
    raise refused


def _check_package(operation: str, client: str, scheme: str | None) -> None:
    from importlib.util import find_spec

    package = _SOCKS_BY.get(client)
    if package is not None and scheme is not None and scheme.startswith("socks") and find_spec(package) is None:
        how = '`pip install hopline[socks]`, or buy the session with `protocol="http"`'
        invalid(operation, "protocol", f"is socks5, and {client} can't speak it without the package `{package}`; use {how}")
