"""A port that leads through sessions, and its clients: raw sockets and the programs that people have."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from command_line import PROGRAM as PROGRAM
from command_line import Said, Shell
from sandbox import Sandbox, control

needs_wget = pytest.mark.skipif(shutil.which("wget") is None and os.environ.get("CI") != "true", reason="wget is not here")
needs_curl = pytest.mark.skipif(shutil.which("curl") is None and os.environ.get("CI") != "true", reason="curl is not here")


class Site:
    """A sandbox with its target over https, too."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.sandbox = Sandbox("--seed", "7", "--provisioning-ms", "20-60", "--session-limit", "100", "--rate-limit", "1000000", "--balance", "1000", "--tls", str(folder), *options)
        self.plain, self.secure, self.ca = (self.sandbox.ready[name] for name in ("target_url", "tls_target", "tls_ca"))

    def visits(self) -> list[dict[str, Any]]:
        came: list[dict[str, Any]] = control(f"{self.sandbox.ready['control_url']}/visits")["visits"]
        return came


def curl(site: Site, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["curl", "--silent", "--show-error", "--max-time", "60", "--noproxy", "", "--cacert", site.ca, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90)


def exit_by_curl(site: Site, *arguments: str) -> str:
    """The exit that a page was fetched by."""
    done = curl(site, *arguments)
    assert done.returncode == 0, done.stderr
    address: str = json.loads(done.stdout)["address"]
    return address


def exit_by_wget(site: Site, url: str, proxy: str) -> str:
    scheme = urlsplit(url).scheme
    command = ["wget", "--quiet", "--output-document=-", "--tries=1", "--timeout=60", f"--ca-certificate={site.ca}", "-e", f"{scheme}_proxy={proxy}", url]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=environment)
    assert done.returncode == 0, done.stderr
    address: str = json.loads(done.stdout)["address"]
    return address


def status_of(port: str) -> dict[str, Any]:
    told: dict[str, Any] = control(f"{port}/status.json")
    return told


def connected(port: str) -> socket.socket:
    where = urlsplit(port)
    return socket.create_connection((where.hostname, where.port), timeout=60)


def answer(port: str, request: bytes) -> bytes:
    """The whole answer to some bytes."""
    with connected(port) as client:
        client.sendall(request)
        return all_of(client)


def all_of(client: socket.socket) -> bytes:
    """All that comes until the other end has said all, or resets the connection."""
    read = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            read += piece
    return read


def tunnel(port: str, target: str, *fields: str) -> socket.socket:
    """A connection to a target through the port."""
    client = connected(port)
    client.sendall("\r\n".join([f"CONNECT {target} HTTP/1.1", f"Host: {target}", *fields, "", ""]).encode())
    read = b""
    while not read.endswith(b"\r\n\r\n"):
        piece = client.recv(1)
        assert piece, read
        read += piece
    assert read.startswith(b"HTTP/1.1 200 "), read
    return client


@contextlib.contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A target of one's own, with a thread for each connection. Returns its host and port."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=served, args=(client,), daemon=True).start()

    def served(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            serve(client)

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join(60)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class PortCommand:
    """The command `hopline proxy --pool`, which runs until this is closed."""

    def __init__(self, shell: Shell, *options: str, size: int = 3, pool: str = "shop") -> None:
        self.shell = shell
        words = ("--size", str(size), "--product", "dynamic-world", "--daily-cap", "500")
        self.process = shell.begin("proxy", "--pool", pool, *words, *options)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), self.process.communicate()

    def __enter__(self) -> "PortCommand":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def named(self, key: str, token: str = "") -> str:
        """The URL with a user name."""
        return self.url.replace("http://", f"http://{key}:{token}@")

    def status(self) -> dict[str, Any]:
        return status_of(self.url)

    def report(self, **given: object) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.post(f"{self.url}/report", data=given, timeout=60)

    def end(self, signal_number: int = signal.SIGTERM) -> Said:
        self.process.send_signal(signal_number)
        return self.shell.end(self.process)
