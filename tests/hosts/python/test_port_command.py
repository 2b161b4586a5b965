"""`hopline proxy --pool`: one port over a whole pool, for programs of any language."""

import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from canned import until
from command_line import Shell, interrupt
from ports import PortCommand, Site, all_of, answer, connected, curl, exit_by_curl, exit_by_wget, needs_curl, needs_wget, server, tunnel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sandbox is for Unix")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "tls"
    folder.mkdir()
    made = Site(folder)
    yield made
    made.sandbox.close()


@pytest.fixture
def shell(site: Site, tmp_path: Path) -> Shell:
    (tmp_path / "store").mkdir()
    return Shell(site.sandbox, tmp_path / "store")


def host_of(site: Site) -> str:
    return site.plain.removeprefix("http://").strip("/")


def page_over(client: socket.socket) -> str:
    """The exit of a page that is fetched over an open tunnel."""
    client.sendall(b"GET /kept HTTP/1.1\r\nHost: shop.localhost\r\n\r\n")
    read = b""
    while b"}" not in read:
        piece = client.recv(4096)
        assert piece, read
        read += piece
    address: str = json.loads(read[read.index(b"{") :])["address"]
    return address


def test_sixty_pages_of_a_site_that_blocks_an_exit_after_ten(site: Site, shell: Shell) -> None:
    site.sandbox.control("target", {"block_after": 10})
    pages: list[tuple[str, int]] = []
    advices: list[str] = []

    # A worker that is done keeps its connection, and so its exit, until all are.
    all_done = threading.Barrier(3, timeout=120)

    def worker(port: PortCommand, number: int) -> None:
        with requests.Session() as session:
            session.trust_env = False
            session.proxies = {"https": port.named(f"worker-{number}")}
            session.verify = site.ca
            for page in range(number * 20, number * 20 + 20):
                status = 403
                while status == 403:
                    status = session.get(f"{site.secure}{page}", timeout=60).status_code
                    # The port can't see it, since it is encrypted.
                    advices.append(port.report(key=f"worker-{number}", seen=status).json()["advice"])
                pages.append((f"/{page}", status))
            all_done.wait()

    with PortCommand(shell) as port:
        workers = [threading.Thread(target=worker, args=(port, number)) for number in range(3)]
        for one in workers:
            one.start()
        for one in workers:
            one.join(150)
        status = port.status()
        ended = port.end()
    assert sorted(pages) == sorted((f"/{page}", 200) for page in range(60))
    visits = site.visits()
    blocks = [visit for visit in visits if visit["status"] == 403]
    assert len(visits) == 60 + len(blocks) and Counter(advices) == {"keep": 60, "give_back": len(blocks)}
    assert site.sandbox.times("rotate_session") == len(blocks) == 3 and site.sandbox.charges() == 3
    connections = defaultdict(set)
    for visit in visits:
        connections[visit["exit"]].add(visit["connection"])
    assert all(len(one) == 1 for one in connections.values()) and len(connections) == 6
    # No request by an exit after its rotation.
    for blocked in blocks:
        assert visits.index(blocked) == max(at for at, visit in enumerate(visits) if visit["exit"] == blocked["exit"])
    assert status["spent_today_usd"] == "12" and status["connections"] == len(connections) and status["bytes_received"] > 60 * 50
    assert ended.code == 0 and "spent today 12 USD" in ended.err


def test_where_a_site_blocks_everybody_the_port_says_so_and_neither_rotates_on_nor_buys(site: Site, shell: Shell) -> None:
    site.sandbox.control("target", {"block_all_ms": 600_000})
    with PortCommand(shell) as port, requests.Session() as session:
        session.trust_env, session.verify = False, site.ca
        blocks, refusal = 0, ""
        while not refusal:
            # Each worker has a name of its own, and keeps no connection.
            session.proxies = {"https": port.named(f"worker-{blocks}")}
            try:
                assert session.get(site.secure, headers={"Connection": "close"}, timeout=90).status_code == 403
                blocks += 1
                assert port.report(key=f"worker-{blocks - 1}", seen=403).ok and blocks < 10
            except requests.exceptions.ProxyError as error:
                refusal = str(error)
        assert "503 Service Unavailable: no session is free; " in refusal and " rest until " in refusal
        assert blocks >= 3 and site.sandbox.times("rotate_session") <= 4 and site.sandbox.charges() <= 3


@needs_curl
@needs_wget
def test_each_connection_has_a_session_of_its_own_and_those_of_one_user_name_share_one(site: Site, shell: Shell) -> None:
    with PortCommand(shell, "--timeout", "60") as port:
        with tunnel(port.url, host_of(site)) as first, tunnel(port.url, host_of(site)) as second:
            exits = {page_over(first), page_over(second)}
            assert len(exits) == 2 and site.sandbox.charges() == 2
            third = exit_by_curl(site, "--proxy", port.url, site.secure)
            assert third not in exits
            by_key = {
                exit_by_curl(site, "--proxy", port.named("me"), site.secure),
                exit_by_curl(site, "--proxy", port.named("me").replace("http:", "socks5h:"), site.plain),
                exit_by_wget(site, site.plain, port.named("me")),
            }
            assert by_key == {third} and site.sandbox.charges() == 3
            # All three are in use now, two of them by connections without a name.
            late: list[str] = []
            waiting = threading.Thread(target=lambda: late.append(exit_by_curl(site, "--proxy", port.named("other"), site.secure)))
            waiting.start()
            waiting.join(60)
            assert late == [third]  # the lease of a key that only stayed a moment longer is given back at once
        assert port.status()["pool"] == "shop" and len(port.status()["exits"]) == 3
        page = requests.get(port.url, timeout=60)
        assert page.headers["content-type"] == "text/html; charset=utf-8" and "spent today usd</th><td>12<" in page.text
        ended = port.end(signal.SIGINT)
    assert ended.code == 0 and "the port is closed after 7 connections" in ended.err and site.sandbox.charges() == 3


def test_a_client_that_is_gone_waits_for_no_session(site: Site, shell: Shell) -> None:
    with PortCommand(shell, size=1) as port, tunnel(port.url, host_of(site)):
        leaving = connected(port.url)
        leaving.sendall(b"CONNECT shop.localhost:80 HTTP/1.1\r\n\r\n")
        until(lambda: port.status()["waiting"] == 1)
        leaving.close()
        until(lambda: port.status()["waiting"] == 0)
        resetting = connected(port.url)
        resetting.sendall(b"CONNECT shop.localhost:80 HTTP/1.1\r\n\r\n")
        until(lambda: port.status()["waiting"] == 1)
        resetting.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        resetting.close()
        until(lambda: port.status()["waiting"] == 0)
        assert port.status()["open_connections"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_a_thousand_connections_and_clients_that_never_read_leave_neither_a_descriptor_nor_a_lease(site: Site, shell: Shell) -> None:
    def serve(client: socket.socket) -> None:
        while data := client.recv(100):
            while data == b"without end":
                client.sendall(bytes(65536))

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8000)), hard))
    # By SOCKS5 to the target, through one session.
    with server(serve) as target, PortCommand(shell, "--key", "browser", "--protocol", "socks5", size=1) as port:
        descriptors = lambda: len(os.listdir(f"/proc/{port.process.pid}/fd"))  # noqa: E731
        tunnel(port.url, target).close()
        until(lambda: port.status()["open_connections"] == 0)
        before = descriptors()
        clients = [connected(port.url) for _ in range(1000)]
        for client in clients:
            client.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        for client in clients:
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        for lazy in clients[:10]:
            lazy.sendall(b"without end")
        assert port.status()["open_connections"] == 1000 and port.status()["leased"] == 1
        for client in clients:
            client.close()
        until(lambda: port.status()["open_connections"] == 0)
        until(lambda: descriptors() <= before)
        tunnel(port.url, target, "Proxy-Authorization: Basic b3RoZXI6").close()  # another name gets the one session
        assert port.end().code == 0 and site.sandbox.charges() == 1


@needs_curl
def test_a_report_finds_the_exit_of_a_client_that_has_left(site: Site, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with PortCommand(shell) as port:
        first = exit_by_curl(site, "--proxy", port.named("me"), site.secure)
        kept = port.report(key="me", seen=200).json()
        assert kept["advice"] == "keep" and exit_by_curl(site, "--proxy", port.named("me"), site.secure) == first
        assert port.report(key="me", seen="captcha").json() == {**kept, "advice": "give_back"}
        assert exit_by_curl(site, "--proxy", port.named("me"), site.secure) != first
        unknown, nameless, odd = port.report(key="you", seen=403), port.report(seen=403), port.report(key="me", seen="odd")
        assert (unknown.status_code, nameless.status_code, odd.status_code) == (404, 400, 400)
        assert "comes too late, or its key is another one" in unknown.text and "`key=…`" in nameless.text and "`captcha`" in odd.text


@needs_curl
def test_one_key_for_all_and_plain_answers_that_the_port_sees_itself(site: Site, shell: Shell) -> None:
    site.sandbox.control("target", {"block_first_exit": True})
    with PortCommand(shell, "--key", "browser") as port:
        with tunnel(port.url, host_of(site)) as first, tunnel(port.url, host_of(site)) as second:
            assert page_over(first) == page_over(second)
            assert curl(site, "--proxy", port.url, "--output", "/dev/null", "--write-out", "%{http_code}", site.plain).stdout == "403"
            # The next connection has another exit; those that are open go on.
            third = exit_by_curl(site, "--proxy", port.url, site.plain)
            assert page_over(first) == page_over(second) != third
        assert site.sandbox.charges() == 2


def test_who_has_no_token_gets_nothing(site: Site, shell: Shell) -> None:
    secured = Shell(site.sandbox, Path(shell.environment["HOPLINE_STORE"]), HOPLINE_PROXY_TOKEN="canary-token")
    with PortCommand(secured, "--listen", "0.0.0.0:0") as port:
        url = port.url.replace("0.0.0.0", "127.0.0.1")
        connect = b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n"
        assert answer(url, connect + b"\r\n").startswith(b"HTTP/1.1 407 ")
        assert answer(url, connect + b"Proxy-Authorization: Basic bWU6d3Jvbmc=\r\n\r\n").startswith(b"HTTP/1.1 407 ")
        assert answer(url, b"\x05\x01\x00") == b"\x05\xff" and answer(url, b"\x05\x01\x02\x01\x02me\x05wrong") == b"\x05\x02\x01\x01"
        assert requests.get(url, timeout=60).status_code == requests.get(f"{url}/status.json", auth=("me", "wrong"), timeout=60).status_code == 401
        assert site.sandbox.charges() == 0
        with requests.Session() as session:
            session.trust_env, session.verify = False, site.ca
            for way in (url, url.replace("http:", "socks5h:")):
                session.proxies = {"https": way.replace("://", "://me:canary-token@")}
                assert session.get(site.secure, timeout=60).status_code == 200
            assert session.get(f"{url}/status.json", auth=("", "canary-token"), timeout=60).json()["connections"] == 2
        bearer = b"Proxy-Authorization: Bearer canary-token\r\n\r\n"
        with connected(url) as client:
            client.sendall(f"CONNECT {host_of(site)} HTTP/1.1\r\n".encode() + bearer)
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        ended = port.end()
    assert ended.code == 0 and "canary" not in ended.out + ended.err


def test_nothing_is_lost_by_a_kill_and_the_next_start_has_the_same_sessions(site: Site, shell: Shell) -> None:
    with PortCommand(shell) as port, tunnel(port.url, host_of(site)) as first, tunnel(port.url, host_of(site)) as second:
        exits = {page_over(first), page_over(second)}
        port.process.kill()
        port.process.wait(60)
        all_of(first)
    with PortCommand(shell) as port:
        with tunnel(port.url, host_of(site)) as first, tunnel(port.url, host_of(site)) as second:
            assert {page_over(first), page_over(second)} == exits
            ended = port.end()  # while both are open
            all_of(first)
            all_of(second)
    assert ended.code == 0 and site.sandbox.charges() == 2
    other = shell.run("proxy", "--pool", "shop", "--size", "3", "--product", "dynamic-world", "--daily-cap", "500", "--protocol", "http", code=1).err
    assert "another" in other, other
    pool = json.loads(shell.run("pool", "status", "shop", "--json").out)
    assert (pool["free"], pool["in_doubt"], pool["empty"]) == (2, 0, 1)


def test_a_pool_that_another_program_drains_has_no_session_any_more(site: Site, shell: Shell) -> None:
    with PortCommand(shell) as port:
        with tunnel(port.url, host_of(site)) as client:
            page_over(client)
        shell.run("pool", "drain", "shop", "--yes")
        until(lambda: "closed" in port.status())
        refused = answer(port.url, b"CONNECT shop.localhost:80 HTTP/1.1\r\n\r\n")
        assert refused.startswith(b"HTTP/1.1 503 Service Unavailable: ") and b"closed" in refused, refused
        assert "closed" in requests.get(port.url, timeout=60).text
        ended = port.end()
    assert ended.code == 0 and "closed" in ended.err


def test_why_there_is_no_session_is_one_sentence(site: Site, shell: Shell) -> None:
    with PortCommand(shell, "--timeout", "0.3", size=1) as port:
        until(lambda: b" 200 " in answer(port.url, f"GET {site.plain} HTTP/1.1\r\n\r\n".encode()))
        with tunnel(port.url, host_of(site)):
            busy = answer(port.url, b"CONNECT shop.localhost:80 HTTP/1.1\r\n\r\n")
            assert busy.startswith(b"HTTP/1.1 503 Service Unavailable: no session ") and b"1 session: 1 is lent" in busy and busy.count(b"\n") < 10
            assert answer(port.url, b"\x05\x01\x00\x05\x01\x00\x03\x01a\x00P")[2:4] == b"\x05\x01"
    site.sandbox.fault("create_session", 100, kind="error", code="INSUFFICIENT_BALANCE", status=402)
    with PortCommand(shell, "--timeout", "20", pool="poor") as port:
        begun = time.monotonic()
        poor = answer(port.url, b"CONNECT shop.localhost:80 HTTP/1.1\r\n\r\n")
        assert b"HTTP/1.1 503 " in poor and b"balance" in poor and b"Retry-After: " in poor, poor
        assert time.monotonic() - begun < 15 and port.status()["hold"]["reason"] == "balance"
        assert "balance" in requests.get(port.url, timeout=60).text


def test_a_session_whose_login_was_changed_is_passed_over(site: Site, shell: Shell) -> None:
    with PortCommand(shell, size=2) as port:
        with tunnel(port.url, host_of(site)) as first, tunnel(port.url, host_of(site)) as second:
            page_over(first), page_over(second)
        stale = site.sandbox.state()["sessions"][0]["session_id"]
        site.sandbox.control("faults", {"operation": "get_session", "times": 1, "fault": {"kind": "delay", "ms": 2000}})
        rotated = {"X-API-Key": site.sandbox.ready["api_key"], "Idempotency-Key": "by-hand"}
        done = requests.post(f"{site.sandbox.ready['agent_url']}/sessions/{stale}/rotate", json={"reason": "manual"}, headers=rotated, timeout=60)
        assert done.ok, done.text
        for _ in range(4):
            with tunnel(port.url, host_of(site)) as client:
                page_over(client)
        status = port.status()
        assert sum(one["failures"] for one in status["exits"]) >= 1 and status["refused"] == 0


def test_wrong_usage_says_what_is_needed(site: Site, shell: Shell) -> None:
    assert "NAME or --pool NAME" in shell.run("proxy", code=2).err and "NAME or --pool NAME" in shell.run("proxy", "a", "--pool", "b", code=2).err
    given = ("proxy", "--pool", "shop", "--size", "1", "--daily-cap", "5")
    assert "--product PRODUCT is needed" in shell.run(*given, code=2).err
    assert "did you mean `dynamic-world`?" in shell.run(*given, "--product", "dynamic-word", code=1).err
    assert "such as 127.0.0.1:8080" in shell.run(*given, "--product", "dynamic-world", "--listen", "everywhere", code=2).err
    assert "--token or HOPLINE_PROXY_TOKEN is needed" in shell.run(*given, "--product", "dynamic-world", "--listen", "0.0.0.0:0", code=2).err
    everywhere = (*given, "--product", "dynamic-world", "--listen", "0.0.0.0:0")
    assert "the token has 0 letters" in shell.run(*everywhere, "--token", "", code=2).err
    assert "the token has 5 letters" in shell.run(*everywhere, "--token", "short", code=2).err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"`{place}` can't be listened to" in shell.run(*given, "--product", "dynamic-world", "--listen", place, code=1).err
    started = shell.begin(*given, "--product", "dynamic-world", "--json", "--quantity", "2")
    assert started.stdout is not None
    first = "".join(iter(started.stdout.readline, "}\n")) + "}"
    assert json.loads(first)["url"].startswith("http://127.0.0.1:")
    interrupt(started)
    ended = shell.end(started)
    assert ended.code == 0 and ended.json["connections"] == 0
