"""A service on a bare socket, for answers that `tests/peers` can't give, since it relays those of the service: of a status that changes what may
follow it (101, 204, 304), and compressed bytes that are none or have no end."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any, Self

Answer = Callable[[str, str], bytes]
"""The answer to a request of a method and a path; the connection stays open."""


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
        self.account = {"base_url": f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1", "api_key": "the-api-key"}

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._speak, args=(self._listener.accept()[0],), daemon=True).start()

    def _speak(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as heard:
            while line := heard.readline():
                method, path, _ = line.decode().split()
                length = 0
                while (line := heard.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.partition(b":")[2])
                heard.read(length)
                connection.sendall(self._answer(method, path))
