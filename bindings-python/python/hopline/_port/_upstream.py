"""The way out: a connection to a session's proxy, and through it to a target, by HTTP, HTTPS or SOCKS5 with a login."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from socket import IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET, TCP_NODELAY
from typing import Any, NamedTuple

from .._seen import SeenWord
from ._calls import Call
from ._http import CHUNK, Malformed, read_head, written
from ._words import GENERAL, HOST_UNREACHABLE, NOT_ALLOWED, ProxyFailure, Refusal

PATIENCE = 30.0
"""So many seconds a proxy may take until the connection to the target is there."""
_OUR_OWN = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
"""Failures that are no session's."""
_SOCKS_REPLIES = {1: "general failure", 2: "not allowed", 3: "network unreachable", 4: "host unreachable", 5: "connection refused", 6: "TTL expired"}


class Link(NamedTuple):
    """A connection to a proxy."""

    reader: StreamReader
    writer: StreamWriter


class _Answered(Exception):
    """The answer of a proxy, in words that the core knows from HTTP clients."""

    def __init__(self, status: str, reason: str, fields: Mapping[str, str]) -> None:
        super().__init__(f"Tunnel connection failed: {status} {reason}")
        self.headers = fields


async def connect(proxy: Mapping[str, Any], call: Call) -> Link:
    """Connects to a target through a proxy; for a plain request over an HTTP proxy to the proxy alone. Raises `ProxyFailure`."""
    link: Link | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            link = await _reach(proxy)
            if proxy["scheme"].startswith("socks"):
                await _socks(link, proxy, call)
            elif call.is_tunnel:
                await _tunnel(link, proxy, call)
            return link
    except BaseException as error:
        if link is not None:
            link.writer.transport.abort()
        if isinstance(error, TimeoutError):
            reached = "did not answer" if link is not None else "could not be reached"
            raise ProxyFailure(504, f"the session's proxy {reached} within {PATIENCE:.0f} s", GENERAL, "timeout" if link is not None else "proxy") from None
        if isinstance(error, IncompleteReadError | OSError):
            raise ProxyFailure(502, "the session's proxy closed the connection without an answer", GENERAL, "unknown") from None
        if isinstance(error, Malformed):
            raise ProxyFailure(502, f"the answer of the session's proxy can't be read: {error}", GENERAL, "proxy") from None
        raise


async def _reach(proxy: Mapping[str, Any]) -> Link:
    secure = {"ssl": _trusted(), "server_hostname": proxy["host"]} if proxy["scheme"] == "https" else {}
    try:
        reader, writer = await asyncio.open_connection(proxy["host"], proxy["port"], limit=CHUNK, **secure)
    except TimeoutError:
        raise
    except OSError as error:  # of TLS, too
        if error.errno in _OUR_OWN:
            raise Refusal(503, f"this machine can't make another connection: {os.strerror(error.errno or 0)}") from None
        why = os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else type(error).__name__
        raise ProxyFailure(502, f"the session's proxy could not be reached: {why}", GENERAL, "proxy") from None
    if (made := writer.get_extra_info("socket")) is not None:
        made.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        made.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    return Link(reader, writer)


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _tunnel(link: Link, proxy: Mapping[str, Any], call: Call) -> None:
    fields = [("Host", call.target), ("Proxy-Authorization", proxy["authorization"])]
    link.writer.write(written(f"CONNECT {call.target} HTTP/1.1", fields))
    head = await read_head(link.reader)
    status, reason = head.first[1], head.first[2]
    if status == "200":
        return
    raise refused(f"CONNECT to {call.target}", status, reason, dict(head.fields))


def refused(what: str, status: str, reason: str, fields: Mapping[str, str]) -> ProxyFailure:
    """The failure of a proxy that answered with a status."""
    reply = NOT_ALLOWED if status == "403" else HOST_UNREACHABLE if status in ("502", "504") else GENERAL
    login = ", which is how used-up traffic and changed logins show" if status == "407" else ""
    sentence = f"the session's proxy refused {what} with {status} {reason}".rstrip() + login
    return ProxyFailure(502, sentence, reply, _Answered(status, reason, fields))


async def _socks(link: Link, proxy: Mapping[str, Any], call: Call) -> None:
    reader, writer = link
    writer.write(b"\x05\x01\x02")
    if await reader.readexactly(2) != b"\x05\x02":
        raise ProxyFailure(502, "the session's proxy takes no login by SOCKS5", GENERAL, "proxy")
    name, word = (proxy[part].encode() for part in ("username", "password"))
    writer.write(bytes([1, len(name)]) + name + bytes([len(word)]) + word)
    if (await reader.readexactly(2))[1] != 0:
        raise ProxyFailure(502, "the session's proxy refused the login, which is how used-up traffic and changed logins show", GENERAL, "proxy")
    writer.write(bytes([5, 1, 0]) + _address(call.host) + call.port.to_bytes(2, "big"))
    _, reply, _, kind = await reader.readexactly(4)
    if reply != 0:
        said = _SOCKS_REPLIES.get(reply, f"reply {reply}")
        given = reply if reply in _SOCKS_REPLIES else GENERAL
        seen: SeenWord = "unknown" if reply == 1 else "proxy" if reply == 2 else "target"
        raise ProxyFailure(502, f"the session's proxy could not connect to {call.target}: {said}", given, seen)
    long = {1: 4, 4: 16}.get(kind)
    await reader.readexactly((long if long is not None else (await reader.readexactly(1))[0]) + 2)


def _address(host: str) -> bytes:
    """A target in the form of SOCKS5; names are looked up by the proxy."""
    try:
        numbers = ip_address(host)
    except ValueError:
        name = host.encode()
        return bytes([3, len(name)]) + name
    return bytes([1 if numbers.version == 4 else 4]) + numbers.packed
