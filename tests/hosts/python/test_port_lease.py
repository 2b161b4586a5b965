"""The loopback port of a lease, of a session, and of a proxy from elsewhere: programs that can't log in reach the target through it."""

import asyncio
import errno
import gc
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hopline
import pytest
import requests
from canned import until
from conftest import BUY
from hopline._port import Loopback
from hopline._port._calls import _login
from hopline._port._exits import Exit, OneExit, PoolExits
from peers import Peers
from ports import Site, all_of, answer, connected, descriptors, exit_by_curl, exit_by_wget, needs_curl, needs_wget, server, status_of, tunnel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sandbox is for Unix")
POOL: dict[str, Any] = {**BUY, "daily_cap_usd": 100}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("tls"))
    yield made
    made.sandbox.close()


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    made = Peers("--tls", str(tmp_path_factory.mktemp("peers")))
    yield made
    made.close()


@pytest.fixture
def agent(site: Site) -> Iterator[hopline.AgentClient]:
    with hopline.AgentClient(**site.sandbox.account) as made:
        yield made


@pytest.fixture(params=["http", "socks5"])
def lease(request: pytest.FixtureRequest, agent: hopline.AgentClient) -> Iterator[hopline.Lease]:
    with agent.open_pool("shop", size=1, protocol=request.param, **POOL) as pool:
        with pool.acquire() as lent:
            yield lent
        pool.drain()


@needs_curl
@needs_wget
def test_curl_wget_and_requests_fetch_through_a_session_that_they_can_not_log_in_to(site: Site, lease: hopline.Lease) -> None:
    with lease.proxy.on_loopback() as port:
        socks = port.replace("http://", "socks5h://")
        by_curl = [exit_by_curl(site, "--proxy", way, url) for way in (port, socks, socks.replace("5h", "5")) for url in (site.plain, site.secure)]
        by_curl += [exit_by_curl(site, "--proxy", port, "--data", "x=1", site.plain)]
        by_curl += [exit_by_curl(site, "--proxy", port, "--header", "Transfer-Encoding: chunked", "--upload-file", os.path.abspath(__file__), site.plain)]
        by_wget = [exit_by_wget(site, url, port) for url in (site.plain, site.secure)]
        with requests.Session() as session:
            session.trust_env = False
            by_requests = [
                session.get(url, proxies={"http": way, "https": way}, verify=site.ca, timeout=60).json()["address"]
                for way in (port, socks)
                for url in (site.plain, site.secure.replace("127.0.0.1", "shop.localhost"))
            ]
        assert len({*by_curl, *by_wget, *by_requests}) == 1
        # Kept connections of the session were closed a moment ago, which the port may hear a moment later.
        until(lambda: status_of(port)["open_connections"] == 0)
        status = status_of(port)
        [used] = status["exits"]
        assert used["session_id"] == lease.session_id and used["connections"] == status["connections"] >= 14
        assert used["bytes_sent"] > 1000 and used["bytes_received"] > 1000


def test_the_port_ends_with_its_lease_and_so_do_its_connections(site: Site, lease: hopline.Lease) -> None:
    before = descriptors()
    with lease.proxy.on_loopback() as port:
        with tunnel(port, site.plain.removeprefix("http://").strip("/")) as open_one:
            open_one.sendall(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
            assert open_one.recv(100).startswith(b"HTTP/1.1 200")
            lease.release()
            all_of(open_one)
        until(lambda: _is_refused(port))
        with pytest.raises(hopline.Misuse, match="the lease was given back"):
            lease.proxy.on_loopback()
    gc.collect()
    until(lambda: descriptors() <= before)
    assert not [thread for thread in threading.enumerate() if thread.name == "hopline-port"]


def _is_refused(port: str) -> bool:
    try:
        connected(port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_port_that_nobody_holds_is_closed_and_its_lease_goes_back_with_it(agent: hopline.AgentClient) -> None:
    with agent.open_pool("dropped", size=1, protocol="http", **POOL) as pool:
        opened = pool.acquire().proxy
        with pytest.raises(hopline.Misuse):
            opened.on_loopback()  # nobody has the lease any more
        lease = pool.acquire()
        port = lease.proxy.on_loopback(0)
        url = port.url
        assert repr(port) == f"Loopback('{url}')"
        del lease
        gc.collect()
        assert pool.status().leased == 1 and not _is_refused(url)
        del port
        gc.collect()
        until(lambda: _is_refused(url))
        until(lambda: pool.status().leased == 0)


def test_the_port_of_a_session_follows_it_from_exit_to_exit(site: Site, agent: hopline.AgentClient) -> None:
    target = site.plain.removeprefix("http://").strip("/")
    with agent.open_session(**BUY, protocol="http", intent="port", credentials=True) as session, session.proxy.on_loopback() as port:
        first = requests.get(site.plain, proxies={"http": port}, timeout=60).json()["address"]
        with tunnel(port, target) as old:
            session.rotate()
            all_of(old)  # it ends
        second = requests.get(site.plain, proxies={"http": port}, timeout=60).json()["address"]
        assert first != second and [one["generation"] for one in status_of(port)["exits"]] == [1, 0]
        session.terminate()
        refused = requests.get(site.plain, proxies={"http": port}, timeout=60)
        assert (refused.status_code, refused.text) == (503, "hopline: the lease or session of this port is over, or not usable yet\n")


def test_a_session_without_credentials_has_no_port(agent: hopline.AgentClient) -> None:
    with agent.open_session(**BUY, protocol="http", intent="bare", credentials=False) as session, pytest.raises(hopline.Invalid, match="username"):
        session.proxy.on_loopback()


def test_a_child_of_a_fork_keeps_neither_the_port_nor_its_connections_open(site: Site, agent: hopline.AgentClient) -> None:
    with agent.open_pool("forked", size=1, protocol="http", **POOL) as pool, pool.acquire() as lease, lease.proxy.on_loopback() as port:
        with tunnel(port, site.plain.removeprefix("http://").strip("/")) as client:
            read, written = os.pipe()
            if (child := os.fork()) == 0:
                os.close(written)
                os.read(read, 1)  # until the parent has ended, or says so
                os._exit(0)
            try:
                lease.release()
                assert all_of(client) == b""
                until(lambda: _is_refused(port))
            finally:
                os.close(read)
                os.close(written)
                os.waitpid(child, 0)


def test_in_a_task_a_port_is_opened_and_closed_too(site: Site) -> None:
    async def life() -> str:
        async with hopline.AsyncAgentClient(**site.sandbox.account) as agent, agent.open_pool("tasks", size=1, protocol="http", **POOL) as pool:
            async with pool.acquire() as lease, lease.proxy.on_loopback() as port:
                page = await asyncio.to_thread(requests.get, site.plain, proxies={"http": port}, timeout=60)
                assert page.json()["address"]
            return port

    assert _is_refused(asyncio.run(life()))


def test_what_one_end_has_said_is_passed_on_when_it_closes_its_half(lease: hopline.Lease) -> None:
    def reversed_at_the_end(client: socket.socket) -> None:
        client.sendall(all_of(client)[::-1])

    with server(reversed_at_the_end) as target, lease.proxy.on_loopback() as port, tunnel(port, target) as client:
        client.sendall(b"said" * 50_000)
        client.shutdown(socket.SHUT_WR)
        assert all_of(client) == b"dias" * 50_000
        until(lambda: status_of(port)["open_connections"] == 0)


def test_a_client_that_never_reads_holds_nothing_up_and_ends_with_the_port(site: Site, lease: hopline.Lease) -> None:
    sent = 0

    def endless(client: socket.socket) -> None:
        nonlocal sent
        while True:
            sent += client.send(bytes(65536))

    before = descriptors()
    with server(endless) as target, lease.proxy.on_loopback() as port:
        with tunnel(port, target) as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            last = -1
            while last != sent:
                last = sent
                time.sleep(0.3)
            # What the system's own buffers hold, and no more of the port's than a few pieces.
            assert 0 < sent < 64 << 20
            assert requests.get(site.plain, proxies={"http": port}, timeout=60).status_code == 200
            lease.release()
            until(lambda: _is_refused(port))
    until(lambda: descriptors() <= before)


@pytest.mark.parametrize("lease", ["http"], indirect=True)
def test_a_thousand_connections_at_once(lease: hopline.Lease) -> None:
    def echo(client: socket.socket) -> None:
        while data := client.recv(100):
            client.sendall(data)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8000)), hard))
    count = 1000
    before = descriptors()
    with server(echo) as target, lease.proxy.on_loopback() as port:
        clients = [connected(port) for _ in range(count)]
        for client in clients:
            client.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        for number, client in enumerate(clients):
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
            client.sendall(b"%d" % number)
        assert [int(client.recv(100)) for client in clients] == list(range(count))
        assert status_of(port)["open_connections"] == count
        for client in clients[::2]:
            client.close()
        until(lambda: status_of(port)["open_connections"] == count // 2)
        for client in clients[1::2]:
            client.close()
        until(lambda: status_of(port)["open_connections"] == 0)
        assert status_of(port)["connections"] == count
    until(lambda: descriptors() <= before)


REFUSED = {
    "not HTTP": (b"hello\r\n\r\n", b"HTTP/1.1 400 "),
    "a host that is none": (b'CONNECT a"b:443 HTTP/1.1\r\n\r\n', b"HTTP/1.1 400 "),
    "a host with a line break": (b"\x05\x01\x00\x05\x01\x00\x03\x06a\r\nb:c\x00P", b"\x05\x00\x05\x08"),
    "no port": (b"CONNECT shop.localhost HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
    "https as a plain request": (b"GET https://shop.localhost/ HTTP/1.1\r\n\r\n", b"HTTP/1.1 501 "),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\n", b"HTTP/1.1 400 "),
    "two lengths": (b"POST http://shop.localhost/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"HTTP/1.1 400 "),
    "a length and chunks": (b"POST http://shop.localhost/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 400 "),
    "a URL with half a bracket": (b"GET http://[/ HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
    "a page with half a bracket": (b"GET / HTTP/1.1\r\nHost: [\r\n\r\n", b"HTTP/1.1 403 "),
    "two codings": (b"POST http://shop.localhost/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", b"HTTP/1.1 400 "),
    "a line break in the URL": (b"GET http://shop.localhost/\nX-Own:1 HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
    "an endless status": (b"POST /report?seen=" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 400 "),
    "a field with a space": (b"GET http://shop.localhost/ HTTP/1.1\r\nBad Name: x\r\n\r\n", b"HTTP/1.1 400 "),
    "a head without an end": (b"GET http://shop.localhost/ HTTP/1.1\r\nX: " + bytes([97]) * 70_000, b"HTTP/1.1 400 "),
    "SOCKS4": (b"\x04\x01\x00P\x7f\x00\x00\x01\x00", b"\x00\x5b"),
    "SOCKS5 with BIND": (b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00P", b"\x05\x00\x05\x07"),
    "SOCKS5 with an odd address": (b"\x05\x01\x00\x05\x01\x00\x09", b"\x05\x00\x05\x08"),
    "SOCKS5 with another login": (b"\x05\x01\x01", b"\x05\xff"),
    "a page of a site": (b"GET /status.json HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n", b"HTTP/1.1 403 "),
    "a page by another name": (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"HTTP/1.1 403 "),
    "no page": (b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 404 "),
    "a report by GET": (b"GET /report?seen=403 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 405 "),
}


def test_what_a_port_does_not_do_is_refused_in_the_clients_language(peers: Peers) -> None:
    with peers.proxy("http", "right").on_loopback() as port:
        got = {name: answer(port, sent) for name, (sent, _) in REFUSED.items()}
        assert {name for name, (_, wanted) in REFUSED.items() if not got[name].startswith(wanted)} == set(), got
        with connected(port) as silent:
            silent.sendall(b"CONN")
        assert status_of(port)["connections"] == 0
    assert peers.logins() == []


# By kind and name of a proxy that fails: the status, words of the sentence, and the reply of SOCKS5.
FAILURES = {
    ("http", "refuses_login"): (502, "refused CONNECT to 127.0.0.1:9 with 407", 1),
    ("http", "forbids"): (502, "refused CONNECT to 127.0.0.1:9 with 403", 2),
    ("http", "bad_gateway"): (502, "refused CONNECT to 127.0.0.1:9 with 502", 4),
    ("http", "closes"): (502, "closed the connection without an answer", 1),
    ("http", "dead"): (502, "could not be reached: Connection refused", 1),
    ("https", "right"): (502, "could not be reached: SSLCertVerificationError", 1),
    ("socks5", "refuses_login"): (502, "refused the login", 1),
    ("socks5", "forbids"): (502, "could not connect to 127.0.0.1:9: not allowed", 2),
    ("socks5", "bad_gateway"): (502, "could not connect to 127.0.0.1:9: general failure", 1),
    ("socks5", "unreachable"): (502, "could not connect to 127.0.0.1:9: host unreachable", 4),
    ("socks5", "closes"): (502, "closed the connection without an answer", 1),
    ("socks5", "dead"): (502, "could not be reached: Connection refused", 1),
}


@pytest.mark.parametrize("kind, name", FAILURES)
def test_a_failure_of_the_proxy_is_one_sentence(kind: str, name: str, peers: Peers) -> None:
    status, words, reply = FAILURES[kind, name]
    with peers.proxy(kind, name).on_loopback() as port:
        head, _, body = answer(port, b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status) and words in head.split(b"\r\n")[0].decode()
        assert words in body.decode() and body.count(b"\n") == 1
        by_socks = answer(port, b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x09")
        assert by_socks[2:4] == bytes([5, reply])
        assert status_of(port)["refused"] == 2


def test_a_machine_without_descriptors_is_no_fault_of_the_session(site: Site, agent: hopline.AgentClient, monkeypatch: pytest.MonkeyPatch) -> None:
    agent._engine.leases.watch = noted = Observed()  # type: ignore[assignment]

    async def exhausted(*_: object, **__: object) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    with agent.open_pool("many", size=1, protocol="http", **POOL) as pool, pool.acquire() as lease, lease.proxy.on_loopback() as port:
        monkeypatch.setattr("hopline._port._upstream.asyncio.open_connection", exhausted)
        assert b"503 Service Unavailable: this machine can't make another connection: Too many" in answer(port, b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n")
        assert noted.seen == []


def test_a_proxy_that_says_nothing_is_given_up_in_time(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopline._port._upstream.PATIENCE", 0.2)
    for kind in ("http", "socks5"):
        with peers.proxy(kind, "hangs").on_loopback() as port:
            # A machine that is slow may not even have reached it by then.
            assert b"504 Gateway Timeout: the session's proxy " in answer(port, b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n")


class Observed:
    """Notes what the leases of a client are told."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def observed(self, pool: str, seen: str) -> None:
        self.seen.append(seen)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize("protocol", ["http", "socks5"])
def test_what_the_port_sees_of_the_proxy_and_of_plain_answers_is_observed_to_the_lease(protocol: Any, site: Site, agent: hopline.AgentClient) -> None:
    agent._engine.leases.watch = noted = Observed()  # type: ignore[assignment]
    with agent.open_pool("seen", size=1, protocol=protocol, **POOL) as pool:
        with pool.acquire() as lease, lease.proxy.on_loopback() as port:
            ways = {"http": port, "https": port}
            assert requests.get(site.plain, proxies=ways, timeout=60).status_code == 200
            assert requests.get(site.secure, proxies=ways, verify=site.ca, timeout=60).status_code == 200
            site.sandbox.control("target", {"throttle": {"times": 1, "retry_after": 5}})
            assert requests.get(site.plain, proxies=ways, timeout=60).status_code == 429
            with pytest.raises(requests.exceptions.ProxyError):
                requests.get("https://127.0.0.1:9/", proxies=ways, timeout=60)
            with server(lambda client: client.close()) as nothing:
                assert requests.get(f"http://{nothing}/", proxies={"http": port}, timeout=60).status_code == 502
            # Somebody else changes the login of the session: the old one is refused.
            with hopline.AgentClient(**site.sandbox.account) as other:
                other.rotate_session(session_id=lease.session_id)
            with pytest.raises(requests.exceptions.ProxyError, match="refused .*used-up traffic and changed logins"):
                requests.get(site.secure, proxies=ways, verify=site.ca, timeout=60)
        # A proxy that speaks HTTP answers itself for the target that said nothing.
        silent = {"status": 502} if protocol == "http" else "unknown"
        assert list(map(json.loads, noted.seen)) == [{"status": 200}, {"status": 429}, "target", silent, "proxy"]
        pool.drain()


def test_an_answer_without_a_length_and_one_of_a_kept_connection_both_end(lease: hopline.Lease) -> None:
    answers = {b"/kept": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept", b"/open": b"HTTP/1.0 200 OK\r\n\r\nopen", b"/chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmore\r\n0\r\n\r\n"}
    heads: list[bytes] = []

    def odd(client: socket.socket) -> None:
        head = client.recv(65536)
        heads.append(head)
        path = next(path for path in answers if path in head)
        client.sendall(answers[path])
        if path != b"/open":
            all_of(client)  # it keeps the connection open

    with server(odd) as target, lease.proxy.on_loopback() as port:
        for path in answers:
            request = b"GET http://%s%s HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\nConnection: x-own\r\nX-Own: 1\r\nX-Kept: 1\r\n\r\n" % (target.encode(), path)
            head, _, body = answer(port, request).partition(b"\r\n\r\n")
            assert b"Connection: close" in head and (path[1:] in body or b"more" in body)
        for head in (head.lower().decode() for head in heads):
            assert head.startswith("get /") and f"host: {target}\r\n" in head and "x-kept: 1\r\n" in head
            assert not any(word in head for word in ("other", "x-own", "proxy-"))
        until(lambda: status_of(port)["open_connections"] == 0)


def test_a_client_that_is_gone_waits_for_no_plain_answer(lease: hopline.Lease) -> None:
    came, ended = threading.Event(), threading.Event()

    def silent(client: socket.socket) -> None:
        client.recv(65536)
        came.set()
        ended.wait(60)

    with server(silent) as target, lease.proxy.on_loopback() as port:
        with connected(port) as client:
            client.sendall(f"GET http://{target}/ HTTP/1.1\r\n\r\n".encode())
            assert came.wait(60)
        until(lambda: status_of(port)["open_connections"] == 0)
        ended.set()


def test_the_length_of_a_body_is_passed_on_whatever_the_client_says_of_it(lease: hopline.Lease) -> None:
    heads: list[bytes] = []

    def noted(client: socket.socket) -> None:
        heads.append(client.recv(65536))
        client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with server(noted) as target, lease.proxy.on_loopback() as port:
        request = f"POST http://{target}/ HTTP/1.1\r\nConnection: content-length, host\r\nContent-Length: 3\r\n\r\nabc".encode()
        assert b" 204 " in answer(port, request)
    assert b"content-length: 3\r\n" in heads[0].lower()


def test_a_client_that_says_nothing_is_cut_off(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopline._port._server.HEAD", 0.2)
    with peers.proxy("http", "right").on_loopback() as port:
        assert answer(port, b"") == b""


def test_idle_connections_and_those_whose_other_half_stays_silent_end(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopline._port._server.IDLE", 1.5)
    monkeypatch.setattr("hopline._port._server.HALF_CLOSED", 0.5)
    ended = threading.Event()

    def silent(client: socket.socket) -> None:
        all_of(client)
        ended.wait(60)

    with server(silent) as target, peers.proxy("socks5", "right").on_loopback() as port, tunnel(port, target) as idle, tunnel(port, target) as half:
        half.shutdown(socket.SHUT_WR)
        assert all_of(half) == all_of(idle) == b""
        until(lambda: status_of(port)["open_connections"] == 0)
        ended.set()


def test_a_taken_number_is_an_error_of_the_system(peers: Peers) -> None:
    proxy = peers.proxy("http", "right")
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        proxy.on_loopback(taken.getsockname()[1])


def test_a_connection_may_wait_for_a_session_for_longer_than_an_idle_one_stays(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopline._port._server.IDLE", 0.1)
    monkeypatch.setattr("hopline._port._server._LOOKS", 0.02)

    class Late(OneExit):
        async def take(self, key: str | None, host: str, avoid: str | None) -> Exit:
            await asyncio.sleep(0.5)
            return await super().take(key, host, avoid)

    one = Exit(peers.proxy("http", "right"))
    with Loopback(Late(lambda: one), 0, None, None) as port:
        assert answer(port, b"CONNECT shop.example:80 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_lease_is_observed_by_a_report_to_its_port_too_and_a_session_is_not(peers: Peers, lease: hopline.Lease) -> None:
    report = b"POST /report?seen=captcha HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with lease.proxy.on_loopback() as port:
        assert b'"advice": "give_back"' in answer(port, report)
    with peers.proxy("http", "right").on_loopback() as port:
        assert answer(port, report).startswith(b"HTTP/1.1 400 Bad Request: the port of a session observes nothing")


def test_a_program_that_ends_with_an_open_port_ends_quietly() -> None:
    program = "import hopline; port = hopline.Proxy(host='127.0.0.1', port=9, protocol='http', username='me', password='p').on_loopback(); print(port.url)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("http://127.0.0.1:")


def test_a_status_of_999_and_a_body_that_breaks_off_are_observed_to_the_lease(lease: hopline.Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("hopline._port._exits.LeaseExit.observe", lambda _, what: seen.append(getattr(what, "status", what)) or "keep")

    def odd(client: socket.socket) -> None:
        path = client.recv(65536).split()[1]
        client.sendall(b"HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n" if path.endswith(b"/block") else b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")

    with server(odd) as target, lease.proxy.on_loopback() as port:
        assert answer(port, f"GET http://{target}/block HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 999 ")
        assert answer(port, f"GET http://{target}/broken HTTP/1.1\r\n\r\n".encode()).endswith(b"half")
        until(lambda: status_of(port)["open_connections"] == 0)
    assert seen == [999, 200, "unknown"]


def test_each_user_name_has_a_key_of_its_own_and_so_has_each_exit_that_it_gave_up() -> None:
    assert _login("Basic " + b64encode("J\u00f6rg:p".encode("latin-1")).decode()) == ("J\u00f6rg", "p") == _login("Basic " + b64encode("J\u00f6rg:p".encode()).decode())
    asked: list[str] = []

    class Pool:
        async def acquire(self, **terms: Any) -> Any:
            asked.append(terms["key"])
            return Lent()

    class Lent:
        session_id, generation, valid = "s", 0, True
        proxy = hopline.Proxy(host="127.0.0.1", port=9, protocol="http", username="me", password="p")

        def release(self) -> None: ...

    async def life() -> None:
        pool: Any = Pool()
        exits = PoolExits(pool, 1, None)
        for name in ("a", "a#1", "1#a", "0#a"):
            for _ in range(2):
                exits.give_up(await exits.take(name, "shop.example", None))
        exits.close()

    asyncio.run(life())
    assert len(set(asked)) == len(asked) == 8
