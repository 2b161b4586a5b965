"""A service on a bare socket, which answers byte for byte as a test says."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self


class Asked(NamedTuple):
    """A request that came."""

    connection: int
    """Which connection it came over, from 0."""
    nth: int
    """Which request of that connection it is, from 0."""
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Asked], Iterable[bytes | float] | None]
"""What is sent, and how many seconds pass in between; nothing closes the connection."""


def ok(data: Any, status: str = "200 OK", headers: str = "", pack: Callable[[bytes], bytes] = lambda body: body) -> bytes:
    """An answer of the service."""
    body = pack(json.dumps({"success": True, "data": data}).encode())
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Odd:
    """Serves while its `with` block lasts."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self.asked: list[Asked] = []
        port = self._listener.getsockname()[1]
        self.account = {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": "the-api-key"}
        self.port = port

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.close()

    def _serve(self) -> None:
        number = 0
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._speak, args=(connection, number), daemon=True).start()
            number += 1

    def _speak(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as heard:
            nth = 0
            while line := heard.readline():
                method, path, _ = line.decode().split()
                headers = {}
                while (line := heard.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                body = heard.read(int(headers.get("content-length", 0)))
                self.asked.append(Asked(number, nth, method, path, headers, body))
                if (parts := self._answer(self.asked[-1])) is None:
                    return
                for part in parts:
                    if isinstance(part, bytes):
                        connection.sendall(part)
                    else:
                        self._over.wait(part)
                nth += 1
