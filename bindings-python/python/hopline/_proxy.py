"""A session's proxy, as HTTP clients want to be told of it."""

from typing import Any, Literal, NoReturn
from urllib.parse import quote, urlsplit

from ._errors import invalid
from ._values import Secret, Value

_SCHEMES = {"socks5": "socks5h", "http": "http", "https": "https"}


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

    def url(self) -> Secret:
        """The proxy as a URL, credentials included and percent-encoded. `socks5h` means that it also looks names up."""
        return Secret(self._url(self._scheme()))

    def for_requests(self) -> Settings:
        """For requests: `requests.get(url, **proxy.for_requests())`. SOCKS5 needs its extra `requests[socks]`."""
        url = self._url(self._scheme())
        return Settings(proxies=Settings(http=url, https=url))

    def for_httpx(self) -> Settings:
        """For httpx: `httpx.Client(**proxy.for_httpx())`. SOCKS5 needs its extra `httpx[socks]`."""
        # httpx lets a SOCKS proxy look names up in any case, and only its later versions know `socks5h`.
        return Settings(proxy=self._url(self._scheme().removesuffix("h")))

    def for_aiohttp(self) -> Settings:
        """For aiohttp: `session.get(url, **proxy.for_aiohttp())`. It speaks to HTTP proxies only."""
        self._needs_http("aiohttp speaks no SOCKS5 by itself")
        return Settings(proxy=self._url(self._scheme()))

    def for_playwright(self) -> Settings:
        """For Playwright: `browser.new_context(**proxy.for_playwright())`. It logs in to HTTP proxies only."""
        self._needs_http("Playwright can't log in to a SOCKS5 proxy")
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
        return scheme or _refuse("protocol", "is none that is known; ask for the session again once it is active")

    def _address(self) -> str:
        if not self.host or self.port is None:
            _refuse("host", "and port are missing, since the session was not active when it was read; wait for it")
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def _credentials(self) -> tuple[str, str]:
        if self.username is None or self.password is None:
            what = "and password were not asked for; use `credentials=True` to open or wait for a session, `include_credentials=True` to read it"
            _refuse("username", what)
        return self.username.reveal(), self.password.reveal()

    def _needs_http(self, why: str) -> None:
        if self._scheme().startswith("socks"):
            _refuse("protocol", f'is socks5, and {why}; buy the session with `protocol="http"`')


def _refuse(field: Literal["protocol", "host", "username"], rule: str) -> NoReturn:
    invalid("proxy", field, rule)
