"""A session's proxy, as HTTP clients want to be told of it."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, NoReturn, TypeAlias, get_args
from urllib.parse import quote, urlsplit

from ._errors import invalid
from ._values import UNSET, Secret, Value

UseWith: TypeAlias = Literal["requests", "httpx", "aiohttp", "playwright", "curl"]
"""What a session's proxy is to be used with."""
_SCHEMES = {"socks5": "socks5h", "http": "http", "https": "https"}
_DEFAULT_PROTOCOL = "socks5"
"""The protocol of a session that was bought without one."""
_HOST = re.compile(r"[A-Za-z0-9_.:\[\]-]+")
"""A host goes into a URL and a configuration as it is."""
_NO_SOCKS: dict[str, str] = {"aiohttp": "aiohttp speaks no SOCKS5 by itself", "playwright": "Playwright can't log in to a SOCKS5 proxy"}
_SOCKS_BY = {"requests": "socks", "httpx": "socksio"}
"""The package by which an HTTP client speaks SOCKS5."""


class Settings(dict[str, Any]):
    """Keyword arguments for an HTTP client. They hold the password, so they print nothing."""

    def __repr__(self) -> str:
        return "[redacted]"

    __str__ = __repr__


class Reachable(Value):
    """What a proxy can do beside being read."""

    __slots__ = ()
    host: str | None
    port: int | None
    protocol: Any
    username: Secret | None
    password: Secret | None
    full_url: Secret | None

    def __post_init__(self) -> None:
        # What a program gives as a plain text prints as little as what the service gave.
        for name in ("username", "password", "full_url"):
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, Secret(text))

    def url(self) -> Secret:
        """The proxy as a URL, credentials included and percent-encoded. `socks5h` means that it also looks names up."""
        return Secret(self._url(self._scheme()))

    def for_requests(self) -> Settings:
        """For requests: `requests.get(url, **proxy.for_requests())`. SOCKS5 needs `pip install hopline[socks]`."""
        self._check("requests")
        url = self._url(self._scheme())
        return Settings(proxies=Settings(http=url, https=url))

    def for_httpx(self) -> Settings:
        """For httpx: `httpx.Client(**proxy.for_httpx())`. SOCKS5 needs `pip install hopline[socks]`."""
        self._check("httpx")
        # httpx lets a SOCKS proxy look names up in any case, and only its later versions know `socks5h`.
        return Settings(proxy=self._url(self._scheme().removesuffix("h")))

    def for_aiohttp(self) -> Settings:
        """For aiohttp: `session.get(url, **proxy.for_aiohttp())`. It speaks to HTTP proxies only."""
        self._check("aiohttp")
        return Settings(proxy=self._url(self._scheme()))

    def for_playwright(self) -> Settings:
        """For Playwright: `browser.new_context(**proxy.for_playwright())`. It logs in to HTTP proxies only."""
        self._check("playwright")
        username, password = self._credentials()
        server = f"{self._scheme()}://{self._address()}"
        return Settings(proxy=Settings(server=server, username=username, password=password))

    def for_curl(self) -> Secret:
        """For curl: give it to the standard input of `curl --config -`. As an argument, every user could read it."""
        return Secret(f'proxy = "{self._url(self._scheme())}"\n')

    def _url(self, scheme: str) -> str:
        username, password = self._credentials()
        return f"{scheme}://{quote(username, safe='')}:{quote(password, safe='')}@{self._address()}"

    def _scheme(self) -> str:
        if self.full_url is not None:
            # The service says so itself: a proxy for https may well be spoken to in plain HTTP.
            named = urlsplit(self.full_url.reveal()).scheme
            if named in _SCHEMES.values():
                return named
        scheme = _SCHEMES.get(self.protocol or "")
        return scheme or _refuse("protocol", "is missing or unknown; read the session again once it is active")

    def _address(self) -> str:
        if not self.host or self.port is None:
            _refuse("host", "and port are missing, since the session was not active when it was read; wait for it")
        if not _HOST.fullmatch(self.host):
            _refuse("host", "is not a host name or an address")
        return f"[{self.host}]:{self.port}" if ":" in self.host and not self.host.startswith("[") else f"{self.host}:{self.port}"

    def _credentials(self) -> tuple[str, str]:
        if self.username is None or self.password is None:
            what = "and password were not asked for; use `credentials=True` to open or wait for a session, `include_credentials=True` to read it"
            _refuse("username", what)
        return self.username.reveal(), self.password.reveal()

    def _check(self, client: str) -> None:
        if self._scheme().startswith("socks"):
            _check_socks("proxy", client)


def check_use_with(params: Mapping[str, Any], client: UseWith | None) -> None:
    """Refuses, before anything is bought, a session whose proxy the named client can't use."""
    if client is None:
        return
    if client not in get_args(UseWith):
        invalid("open_session", "use_with", f"must be one of {', '.join(get_args(UseWith))}")
    protocol = params.get("protocol", UNSET)
    if protocol is UNSET or protocol == _DEFAULT_PROTOCOL:
        _check_socks("open_session", client)


def _check_socks(operation: str, client: str) -> None:
    if client in _NO_SOCKS:
        invalid(operation, "protocol", f'is socks5, and {_NO_SOCKS[client]}; buy the session with `protocol="http"`')
    package = _SOCKS_BY.get(client)
    if package is not None and find_spec(package) is None:
        how = '`pip install hopline[socks]`, or buy the session with `protocol="http"`'
        invalid(operation, "protocol", f"is socks5, and {client} can't speak it without the package `{package}`; use {how}")


def _refuse(field: Literal["protocol", "host", "username"], rule: str) -> NoReturn:
    invalid("proxy", field, rule)
