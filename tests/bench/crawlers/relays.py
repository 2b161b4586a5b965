"""Relays, each a process of its own: a port without a login before a proxy with one.

relays.py source | hopline URL | streams URL
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

HERE = Path(__file__).parent
MODULES = os.environ.get("HOPLINE_BENCH_NODE")
"""The folder where `proxy-chain` is installed."""
THREADS, BYTES, CONNECTIONS = 4, 32 << 20, 300
WORKS: list[tuple[str, Callable[[float], str]]] = [
    ("bytes of four tunnels", lambda seconds: f"{THREADS * BYTES / seconds / 1e6:.0f} MB/s"),
    ("connections, four at a time", lambda seconds: f"{CONNECTIONS / seconds:.0f}/s"),
]


def measure(upstream: str, rounds: int, *, once: bool) -> dict[str, list[list[float]]]:
    """Seconds that each work took through each relay, round by round. Ours is the first."""
    size, connections = (1000, 8) if once else (BYTES, CONNECTIONS)
    commands = {"hopline": [sys.executable, __file__, "hopline", upstream], "a relay of asyncio's streams": [sys.executable, __file__, "streams", upstream]}
    if MODULES:
        commands["proxy-chain"] = ["node", str(Path(MODULES) / "relay.mjs"), upstream]
    times: dict[str, list[list[float]]] = {name: [[] for _ in WORKS] for name in commands}
    with started([sys.executable, __file__, "source"]) as source:
        relays = {name: started(command) for name, command in commands.items()}
        ports = {name: relay.__enter__() for name, relay in relays.items()}
        for number in range(rounds):
            for name, port in ports.items():
                took = [timed(port, source, size, THREADS), timed(port, source, 1, connections)]
                # The first round warms up.
                for own, seconds in zip(times[name], took, strict=True):
                    own.extend([seconds] if number > 0 or once else [])
        for relay in relays.values():
            relay.__exit__(None, None, None)
    return times


@contextmanager
def started(command: list[str]) -> Iterator[str]:
    """A program that says where it listens, and ends with its input."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None and program.stdout is not None
        yield program.stdout.readline().strip()
        program.stdin.close()


def timed(relay: str, source: str, size: int, times: int) -> float:
    """Seconds for so many tunnels, each of which brings so many bytes."""
    begun = perf_counter()
    with ThreadPoolExecutor(THREADS) as threads:
        for came in threads.map(lambda _: fetched(relay, source, size), range(times)):
            assert came == size
    return perf_counter() - begun


def fetched(relay: str, source: str, size: int) -> int:
    """The bytes that came."""
    where, into, came = urlsplit(relay), memoryview(bytearray(1 << 18)), 0
    with socket.create_connection((where.hostname, where.port or 0), timeout=60) as tunnel:
        tunnel.sendall(f"CONNECT {source} HTTP/1.1\r\nHost: {source}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += tunnel.recv(1)
        assert b" 200 " in head.splitlines()[0], head
        tunnel.sendall(f"{size}\n".encode())
        while more := tunnel.recv_into(into):
            came += more
    return came


def versions() -> dict[str, str]:
    """The versions of others."""
    if not MODULES:
        return {}
    installed: dict[str, Any] = json.loads((Path(MODULES) / "node_modules" / "proxy-chain" / "package.json").read_text())
    return {"proxy-chain": installed["version"], "Node": subprocess.check_output(["node", "--version"], text=True).strip().removeprefix("v")}


def source() -> None:
    """Sends as many bytes as each client asks for."""
    listener = socket.create_server(("127.0.0.1", 0))
    print("{}:{}".format(*listener.getsockname()), flush=True)

    def serve(client: socket.socket) -> None:
        with client, client.makefile("rb") as lines:
            left, block = int(lines.readline()), bytes(1 << 18)
            while left:
                left -= client.send(block[:left])

    def accept() -> None:
        while True:
            threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


def by_hopline(upstream: str) -> None:
    """Our port."""
    import hopline

    of = urlsplit(upstream)
    with hopline.Proxy(host=of.hostname, port=of.port, protocol="http", username=of.username, password=of.password).on_loopback() as url:
        print(url, flush=True)
        sys.stdin.read()


async def by_streams(upstream: str) -> None:
    """The least that a relay of one's own does: no limit of time, no plain HTTP, no end of its own."""
    of = urlsplit(upstream)
    login = b64encode(f"{of.username}:{of.password}".encode())

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        there, back = await asyncio.open_connection(of.hostname, of.port)
        back.write(head[:-2] + b"Proxy-Authorization: Basic " + login + b"\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer))
        back.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("http://{}:{}".format(*server.sockets[0].getsockname()), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["source"]:
            source()
        case ["hopline", url]:
            by_hopline(url)
        case ["streams", url]:
            asyncio.run(by_streams(url))
