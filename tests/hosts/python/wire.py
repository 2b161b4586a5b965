"""A server that misbehaves as told, on a real socket."""

import select
import socket
import struct
import threading
import time
from collections.abc import Callable

Behaviour = Callable[[socket.socket, int], None]
"""What it does with a connection, once a request was read from it; the number counts requests from 1."""


class Wire:
    """It reads whole requests and counts them; what comes then is up to its behaviour."""

    def __init__(self, behaviour: Behaviour, read_first: bool = True) -> None:
        self.requests: list[bytes] = []
        self._behaviour = behaviour
        self._read_first = read_first
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def connections(self) -> int:
        """How many there were."""
        return len(self._open)

    def is_open(self, n: int) -> bool:
        """Whether a connection, by its number from 0, was not closed yet."""
        return self._open[n].fileno() >= 0

    def close(self) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while not self._read_first or self._read(connection):
                self._behaviour(connection, len(self.requests))
                if not self._read_first or connection.fileno() < 0:
                    return
        except OSError:
            return

    def _read(self, connection: socket.socket) -> bool:
        read = b""
        while b"\r\n\r\n" not in read:
            chunk = connection.recv(65536)
            if not chunk:
                return False
            read += chunk
        head, _, body = read.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while lengths and len(body) < int(lengths[0].split(b":")[1]):
            body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return True


def answer(body: bytes, status: str = "200 OK", length: int | None = None, more: str = "") -> bytes:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n{more}\r\n"
    return head.encode() + body


SESSION = b'{"success":true,"data":{"session_id":"s-1","status":"active"}}'


def close(connection: socket.socket, _n: int) -> None:
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def reset(connection: socket.socket, _n: int) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def reset_unread(connection: socket.socket, n: int) -> None:
    select.select([connection], [], [], 10)  # once the request is there, the connect is over, whose failure would be another matter
    reset(connection, n)


def silence(connection: socket.socket, _n: int) -> None:
    time.sleep(30)


def drip_head(connection: socket.socket, _n: int) -> None:
    for byte in answer(SESSION):
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def drip_body(connection: socket.socket, _n: int) -> None:
    head = answer(b"", length=10_000)
    connection.sendall(head)
    while True:
        connection.sendall(b" ")
        time.sleep(0.1)


def endless(connection: socket.socket, _n: int) -> None:
    connection.sendall(answer(b"", length=1 << 40))
    while True:
        connection.sendall(b" " * 65536)


def short(connection: socket.socket, _n: int) -> None:
    connection.sendall(answer(SESSION, length=len(SESSION) + 10))
    close(connection, 0)


def redirect(connection: socket.socket, _n: int) -> None:
    connection.sendall(answer(b"", "307 Temporary Redirect", more="location: /v1/elsewhere\r\n"))


def unavailable(connection: socket.socket, _n: int) -> None:
    connection.sendall(answer(b"busy", "503 Service Unavailable", more="retry-after: 0\r\n"))


def once_then_close(connection: socket.socket, n: int) -> None:
    """Answers the first request, and drops the second one that comes over the same connection."""
    if n == 1:
        connection.sendall(answer(SESSION))
    else:
        close(connection, n)
