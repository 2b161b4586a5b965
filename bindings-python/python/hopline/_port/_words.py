"""The refusals of a port: a sentence for people, an HTTP status, and a reply of SOCKS5."""

from __future__ import annotations

from .._seen import Seen

GENERAL, NOT_ALLOWED, HOST_UNREACHABLE, NO_SUCH_COMMAND, NO_SUCH_ADDRESS = 1, 2, 4, 7, 8
"""Replies of SOCKS5 (RFC 1928)."""
REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    407: "Proxy Authentication Required",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
_LONGEST = 400
"""The most letters of a reason phrase: clients show it, and some read a line of a few KB at most."""


class Refusal(Exception):
    """The reason why a port does not do what a client wants."""

    def __init__(self, status: int, sentence: str, reply: int = GENERAL, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.reply, self.retry_after = status, sentence, reply, retry_after

    def http(self) -> bytes:
        """The response. Many clients show no more of a refused CONNECT than the reason phrase, so the sentence stands there, too."""
        shown = "".join(letter if " " <= letter <= "~" else "?" for letter in self.sentence)[:_LONGEST]
        fields = {"Content-Type": "text/plain; charset=utf-8"}
        if self.retry_after is not None:
            fields["Retry-After"] = str(self.retry_after)
        if self.status == 407:
            fields["Proxy-Authenticate"] = 'Basic realm="hopline"'
        if self.status == 401:
            fields["WWW-Authenticate"] = 'Basic realm="hopline"'
        return response(self.status, f"hopline: {self.sentence}\n".encode(), fields, f"{REASONS[self.status]}: {shown}")

    def socks(self) -> bytes:
        """The reply of SOCKS5, which has no place for words."""
        return bytes([5, self.reply, 0, 1, 0, 0, 0, 0, 0, 0])


class ProxyFailure(Refusal):
    """A failure of the session's proxy, or of the target as the proxy tells it: an observation about the session."""

    def __init__(self, status: int, sentence: str, reply: int, seen: Seen) -> None:
        super().__init__(status, sentence, reply)
        self.seen: Seen = seen


def response(status: int, body: bytes, fields: dict[str, str], reason: str) -> bytes:
    """A whole response, after which the connection is closed."""
    fields = {**fields, "Content-Length": str(len(body)), "Cache-Control": "no-store", "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode() + body
