"""The calls of clients: HTTP CONNECT, plain HTTP with an absolute URL, SOCKS5, or a page of the port itself."""

from __future__ import annotations

import re
from asyncio import StreamReader, StreamWriter
from base64 import b64decode
from hmac import compare_digest
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, inet_ntop

from ._http import Head, Unspoken, read_head
from ._words import GENERAL, NO_SUCH_ADDRESS, NO_SUCH_COMMAND, NOT_ALLOWED, Refusal

_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})")
_LOGIN, _NO_LOGIN, _NONE = 2, 0, 0xFF


class Call:
    """The wish of a client: a connection to a target, one plain request (`head`), or a page of the port (`head`, without a `host`)."""

    def __init__(self, host: str, port: int, login: tuple[str, str] | None, head: Head | None = None, is_socks: bool = False) -> None:
        self.host, self.port, self.login, self.head, self.is_socks = host, port, login, head, is_socks

    @property
    def key(self) -> str | None:
        """The user name that the client sent."""
        return self.login[0] or None if self.login is not None else None

    @property
    def target(self) -> str:
        """The host and port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_tunnel(self) -> bool:
        """True unless the client sends a plain request."""
        return self.head is None

    def accepted(self) -> bytes:
        """The answer that the connection to the target is there."""
        return bytes([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]) if self.is_socks else b"HTTP/1.1 200 Connection established\r\n\r\n"

    def refused(self, refusal: Refusal) -> bytes:
        """The answer that the call is refused."""
        return refusal.socks() if self.is_socks else refusal.http()


async def read_call(reader: StreamReader, writer: StreamWriter, token: str | None) -> Call:
    """Reads the call of a client. Its refusals are answered already where the client has to know before."""
    first = await reader.readexactly(1)
    if first == b"\x05":
        return await _socks(reader, writer, token)
    if first == b"\x04":
        writer.write(b"\0\x5b" + bytes(6))
        raise Unspoken("SOCKS4 is not spoken here; use SOCKS5")
    if not first.isalpha():
        raise Unspoken("neither HTTP nor SOCKS5")
    call = _http(await read_head(reader, first))
    is_page = call.head is not None and not call.host
    if token is not None and not _knows(call, token):
        how = "the token of the port is needed as the password, with any user name"
        raise Refusal(401 if is_page else 407, how)
    return call


def _http(head: Head) -> Call:
    method, target, version = head.first
    if not version.startswith("HTTP/1."):
        raise Refusal(400, f"this port speaks HTTP/1.1 and SOCKS5, and not {version[:20] or 'HTTP/0.9'}")
    login = _login(head.get("authorization" if target.startswith("/") else "proxy-authorization"))
    if target.startswith("/"):
        return Call("", 0, login, head)
    if method == "CONNECT":
        host, port = split(target)
        return Call(host, port, login)
    scheme, _, rest = target.partition("://")
    if scheme.lower() != "http" or not rest:
        raise Refusal(501, f"a plain request has a URL with http://, and this one has `{target[:100]}`; https is by CONNECT")
    host, port = split(re.sub(r"[/?#].*", "", rest, flags=re.DOTALL).rpartition("@")[2], 80)
    _ = head.body  # one whose length is not clear goes nowhere
    return Call(host, port, login, head)


def split(target: str, default: int | None = None) -> tuple[str, int]:
    """The host and the port of a target. A host goes into the head of another request, so it has no letters that a host has not."""
    host, colon, digits = target.rpartition(":")
    if not colon or digits.endswith("]"):
        host, digits = target, "" if default is None else str(default)
    elif not digits and default is not None:
        digits = str(default)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    port = int(digits) if re.fullmatch(r"[0-9]{1,5}", digits) else 0
    if not (_is_host(bare) and 0 < port < 65536):
        raise Refusal(400, f"`{target[:100]}` is not a host with a port", NO_SUCH_ADDRESS)
    return bare, port


def _is_host(host: str) -> bool:
    if _HOST.fullmatch(host):
        return True
    try:
        return ip_address(host).version == 6 and "%" not in host
    except ValueError:
        return False


def _login(told: str | None) -> tuple[str, str] | None:
    """The user name and password of `Basic`, or a token as `Bearer`."""
    scheme, _, rest = (told or "").partition(" ")
    if scheme.lower() == "bearer":
        return "", rest.strip()
    if scheme.lower() != "basic":
        return None
    try:
        login = b64decode(rest, validate=True)
    except ValueError:
        return None
    try:
        name, _, word = login.decode().partition(":")
    except UnicodeDecodeError:  # older clients send another encoding
        name, _, word = login.decode("latin-1").partition(":")
    return name, word


def _knows(call: Call, token: str) -> bool:
    return call.login is not None and compare_digest(call.login[1].encode(), token.encode())


async def _socks(reader: StreamReader, writer: StreamWriter, token: str | None) -> Call:
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    method = _LOGIN if _LOGIN in methods else _NO_LOGIN if _NO_LOGIN in methods and token is None else _NONE
    writer.write(bytes([5, method]))
    if method == _NONE:
        raise Unspoken("no login, which this port needs" if token is not None else "no way to log in that this port knows")
    login = None
    if method == _LOGIN:
        await reader.readexactly(1)
        login = (await _short(reader), await _short(reader))
        is_right = token is None or compare_digest(login[1].encode(), token.encode())
        writer.write(bytes([1, 0 if is_right else 1]))
        if not is_right:
            raise Unspoken("not the token of this port")
    _, command, _, kind = await reader.readexactly(4)
    if kind == 3:
        host = await _short(reader)
    elif kind in (1, 4):
        host = inet_ntop(AF_INET if kind == 1 else AF_INET6, await reader.readexactly(4 if kind == 1 else 16))
    else:
        raise SocksRefusal(f"{kind} is no kind of address", NO_SUCH_ADDRESS)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != 1:
        raise SocksRefusal("SOCKS5 is spoken here with CONNECT alone", NO_SUCH_COMMAND)
    if not (_is_host(host) and port):
        raise SocksRefusal(f"`{host[:100]}` is not a host", NO_SUCH_ADDRESS)
    return Call(host, port, login, is_socks=True)


class SocksRefusal(Refusal):
    """The refusal of a call of SOCKS5 that was not read as one."""

    def __init__(self, sentence: str, reply: int = GENERAL) -> None:
        super().__init__(400, sentence, reply)

    def http(self) -> bytes:
        """The client speaks SOCKS5."""
        return self.socks()


async def _short(reader: StreamReader) -> str:
    return (await reader.readexactly((await reader.readexactly(1))[0])).decode("utf-8", "replace")


def check_page(head: Head, has_token: bool) -> None:
    """Refuses a page of the port to a site in a browser of this machine, which may send requests here, also by a name that it has led here."""
    if head.get("origin") is not None:
        raise Refusal(403, "a site in a browser may not ask the port", NOT_ALLOWED)
    host = re.sub(r":[0-9]*$", "", head.get("host") or "").removeprefix("[").removesuffix("]").lower()
    if not (has_token or host == "localhost" or _is_loopback(host)):
        raise Refusal(403, "the pages of the port are at its own address, such as http://127.0.0.1", NOT_ALLOWED)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
