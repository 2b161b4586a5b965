"""Heads and bodies of HTTP/1.1, as far as a proxy reads them."""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader, StreamWriter
from collections.abc import Callable
from typing import NamedTuple

CHUNK = 65536
"""So many bytes are read at a time, and so long may a head be."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN = {"connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "te", "trailer", "upgrade"}
"""The fields that are about one connection, and go no further."""


class Malformed(Exception):
    """A message that is not HTTP/1.1."""


class Unspoken(Malformed):
    """The call of a client in a language that is not spoken here, or whose refusal it has been told."""


class Head(NamedTuple):
    """The first line of a message in its three parts, and its fields."""

    first: tuple[str, str, str]
    fields: list[tuple[str, str]]

    def get(self, name: str) -> str | None:
        """The value of a field."""
        return next((value for known, value in self.fields if known.lower() == name), None)

    def passed_on(self, *without: str) -> list[tuple[str, str]]:
        """The fields that are meant for the other end."""
        named = {word.strip().lower() for known, value in self.fields if known.lower() == "connection" for word in value.split(",")}
        # Whoever could have the length of a body left out would smuggle a second request in it.
        gone = _OWN | (named - {"content-length", "transfer-encoding", "host"}) | set(without)
        return [(name, value) for name, value in self.fields if name.lower() not in gone]

    @property
    def has_length(self) -> bool:
        """True if the end of the body shows in another way than by the end of the connection."""
        return self.get("transfer-encoding") is not None or self.get("content-length") is not None

    @property
    def body(self) -> int | None:
        """The length of the body; `None` if it comes in chunks. Raises `Malformed` where it is not clear."""
        lengths = {value.strip() for name, value in self.fields if name.lower() == "content-length"}
        codings = [value for name, value in self.fields if name.lower() == "transfer-encoding"]
        coding = ",".join(codings) if codings else None
        # Both at once, or several of one, is how one request is smuggled in another.
        if coding is not None and (lengths or coding.strip().lower() != "chunked"):
            raise Malformed("the length of the body is not clear")
        if len(lengths) > 1 or any(re.fullmatch(r"[0-9]{1,18}", length) is None for length in lengths):
            raise Malformed("the length of the body is not clear")
        return None if coding is not None else int(lengths.pop()) if lengths else 0


def written(first: str, fields: list[tuple[str, str]]) -> bytes:
    """A head as bytes."""
    return "".join([f"{first}\r\n", *(f"{name}: {value}\r\n" for name, value in fields), "\r\n"]).encode("latin-1")


async def read_head(reader: StreamReader, before: bytes = b"") -> Head:
    """Reads a head. Raises `Malformed`, or `IncompleteReadError` where the connection ends before."""
    try:
        text = (before + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except LimitOverrunError:
        raise Malformed(f"the head is longer than {CHUNK} bytes") from None
    line, *rest = text.removesuffix("\r\n\r\n").split("\r\n")
    if re.search(r"[\x00-\x1f\x7f]", line):
        raise Malformed("the first line is not one of HTTP/1.1")
    first = line.split(" ", 2)
    if len(first) < 3:
        first += [""]
    if len(first) != 3:
        raise Malformed("the first line is not one of HTTP/1.1")
    fields = []
    for one in rest:
        name, colon, value = one.partition(":")
        if not colon or _TOKEN.fullmatch(name) is None or re.search(r"[\r\n\0]", value):
            raise Malformed("a header field is not one of HTTP/1.1")
        fields.append((name, value.strip(" \t")))
    return Head((first[0], first[1], first[2]), fields)


async def copy_body(length: int | None, reader: StreamReader, writer: StreamWriter, count: Callable[[int], None]) -> None:
    """Passes on a body, and nothing behind it."""
    if length is not None:
        return await _copy(length, reader, writer, count)
    while True:
        line = await reader.readuntil(b"\r\n")
        size = re.match(rb"[0-9A-Fa-f]{1,15}(?=[;\s])", line)
        if size is None:
            raise Malformed("a chunk has no length")
        writer.write(line)
        count(len(line))
        if int(size[0], 16) == 0:
            break
        await _copy(int(size[0], 16) + 2, reader, writer, count)
    while True:  # what may stand behind the last chunk
        line = await reader.readuntil(b"\r\n")
        writer.write(line)
        if line == b"\r\n":
            return None


async def _copy(length: int, reader: StreamReader, writer: StreamWriter, count: Callable[[int], None]) -> None:
    while length > 0:
        data = await reader.read(min(length, CHUNK))
        if not data:
            raise IncompleteReadError(data, length)
        length -= len(data)
        count(len(data))
        writer.write(data)
        await writer.drain()
