"""Each HTTP client that the README names against the odd server and the proxies that all hosts share; see `tests/peers`."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import hopline
import httpx
import pytest
import requests
import urllib3
from browsing import EACH, By, by_aiohttp_socks, by_httpx, by_httpx_in_a_task, by_impit, by_urllib3, by_urllib3_repeating, seen_by
from conftest import BUY
from peers import Peers
from sandbox import Sandbox
from test_transports import BOTH, OWN, outcomes
from transports import trusting

BUYING = ("create_session", BUY)
SLOW = {"late": "-50", "early-hints": "-50"}
"""A shorter pause serves as well."""
PATIENT = {"attempts": 4, "window": 60.0, "timeout": 20.0}


@pytest.fixture
def peers(sandbox: Sandbox) -> Iterator[Peers]:
    running = Peers("--service", sandbox.account["base_url"].removesuffix("/v1"))
    yield running
    running.close()


@pytest.mark.parametrize("which", BOTH)
def test_a_purchase_before_an_odd_server_is_made_once_and_each_request_gets_its_own_answer(which: str, sandbox: Sandbox, peers: Peers) -> None:
    sold: set[str] = set()
    behaviours = {f"{one['name']}{SLOW.get(one['name'], '')}": one["answer"] for one in peers.ready["behaviours"]}
    for n, (name, kind) in enumerate((behaviours | {"early-hints-0": "given", "second-answer-50": "either"}).items()):
        account = peers.behind(f"{name}.once", sandbox.account)
        bought, other, read = outcomes(which, account, BUYING, BUYING, ("get_balance", {}), **PATIENT)
        for one in (bought, other):
            assert isinstance(one, hopline.Session) and one.session_id not in sold, (name, one, getattr(one, "__notes__", None))
            sold.add(one.session_id)
        assert "balance" in read.raw and sandbox.charges() == 2 * n + 2, name
        if kind == "given":
            calls = [("get_session", {"session_id": one.session_id}) for one in (bought, other)]
            found = outcomes(which, peers.behind(f"{name}.reads", sandbox.account), *calls, attempts=1, timeout=20.0)
            assert [one.session_id for one in found] == [bought.session_id, other.session_id], (name, found)


@pytest.mark.parametrize("which", BOTH)
def test_no_purchase_and_no_write_without_a_key_goes_over_a_connection_that_was_used(which: str, sandbox: Sandbox, peers: Peers) -> None:
    """An answer that comes late over such a connection, or its end at the same moment, would be taken for theirs."""
    for behaviour in ("second-answer-50", "stale", "stale-close", "unasked-408", "close"):
        account = peers.behind(behaviour, sandbox.account)
        # The purchases are the reads' own, too: a connection that was used is there when they begin.
        found = outcomes(which, account, BUYING, ("get_session", {"session_id": "none"}), BUYING, attempts=1, timeout=20.0)
        [first, second] = [one.session_id for one in found if isinstance(one, hopline.Session)]
        ending = [call for one in (first, second) for call in (("get_session", {"session_id": one}), ("terminate_session", {"session_id": one}))]
        ended = outcomes(which, account, *ending, attempts=1, timeout=20.0)[1::2]
        assert not [one for one in ended if isinstance(one, hopline.HoplineError)], (behaviour, ended)
    sessions = sandbox.state()["sessions"]
    assert len(sessions) == 10 == sandbox.charges() and {session["status"] for session in sessions} == {"terminated"}


@pytest.mark.parametrize("which", [which for which in BOTH if "httpx" in which or "aiohttp" in which])
@pytest.mark.parametrize("late", [0, 50])
def test_where_each_read_has_a_connection_of_its_own_no_answer_is_another_ones(which: str, late: int, sandbox: Sandbox, peers: Peers) -> None:
    account = peers.behind(f"second-answer-{late}", sandbox.account)
    found = outcomes(which, account, *[("get_balance", {}), ("get_account", {})] * 4, attempts=1, timeout=20.0)
    assert ["balance" in one.raw for one in found] == [True, False] * 4


@pytest.mark.parametrize("which", BOTH)
def test_an_interim_answer_without_an_answer_is_a_lost_one(which: str, sandbox: Sandbox, peers: Peers) -> None:
    bought, read = outcomes(which, peers.behind("early-hints-60000.writes", sandbox.account), BUYING, ("get_balance", {}), timeout=1.0)
    assert isinstance(bought, hopline.InDoubt) and "balance" in read.raw


@pytest.mark.parametrize("which", OWN)
@pytest.mark.parametrize("hole", ["hangs", "refuses"])
def test_an_address_that_leads_nowhere_is_passed(which: str, hole: str, peers: Peers, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(peers.ready["odd_url"].rpartition(":")[2])
    nowhere = [black.rpartition(":")[0].strip("[]") for black in peers.ready["black_holes"]] if hole == "hangs" else ["127.0.0.3"]
    addresses = [*nowhere, "127.0.0.1"]
    found = [(socket.AF_INET6 if ":" in at else socket.AF_INET, socket.SOCK_STREAM, 6, "", (at, port)) for at in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    account = {**sandbox.account, "base_url": f"http://two.example:{port}/plain/v1"}
    begun = time.monotonic()
    [read] = outcomes(which, account, ("get_balance", {}), timeout=20.0, allow_http=True)
    assert "balance" in read.raw and time.monotonic() - begun < 15


# A session's proxy, as HTTP clients log in to it and meet its failures.

LOGINS = [("søren", "SØREN"), ("ĘdwardĄcki1", "pässword"), ("u" * 120 + "-country-us", "p" * 127), ("user", "%2F:@/ ?#")]
OWN_BYTES = (by_urllib3, by_urllib3_repeating, by_aiohttp_socks, by_impit)
"""They make a login's bytes in a way of their own, or programs do; and impit asks no SOCKS5 proxy for a name."""


@pytest.mark.parametrize(("username", "password"), LOGINS)
@pytest.mark.parametrize(("kind", "by"), [each for each in EACH if each[1] not in OWN_BYTES])
def test_a_proxy_is_given_the_login_as_it_is(kind: str, by: By, username: str, password: str, peers: Peers) -> None:
    proxy = peers.proxy(kind, "right", username, password)
    if by.__name__ == "by_requests" and kind == "socks5" and len(username.encode()) > 127:
        with pytest.raises(hopline.Invalid, match="longer than the 127 bytes"):
            proxy.for_requests()
        return
    assert seen_by(by, "http://shop.example/", proxy) == '{"status": 200}'
    assert set(peers.logins()) == {(username, password)}


@pytest.mark.parametrize(("username", "password"), LOGINS)
@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_the_same_by_curl(kind: str, username: str, password: str, peers: Peers) -> None:
    told = peers.proxy(kind, "right", username, password).for_curl().reveal()
    ran = subprocess.run(["curl", "-sS", "--config", "-", "http://shop.example/429"], input=told, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0 and set(peers.logins()) == {(username, password)}, ran.stderr


PROXY, TARGET, TIMEOUT, UNKNOWN = '"proxy"', '"target"', '"timeout"', '"unknown"'
FAILING = {
    "dead": (PROXY,),
    "hangs": (TIMEOUT,),
    "closes": (PROXY, UNKNOWN),
    "refuses_login": (PROXY, '{"status": 407}'),
    "forbids": (PROXY, UNKNOWN, '{"status": 403}'),
    "bad_request": (PROXY, UNKNOWN, '{"status": 400}'),
    "bad_gateway": (PROXY, UNKNOWN, TARGET, '{"status": 502}'),
    "unreachable": (PROXY, UNKNOWN, TARGET),
}
"""The words for a proxy that fails so. Over plain HTTP its status can't be told from that of the target."""


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("kind", "by"), EACH)
def test_a_proxy_that_fails_is_not_taken_for_its_target(kind: str, by: By, scheme: str, peers: Peers) -> None:
    failing = [name for name in peers.ready[kind] if name != "right"]
    if kind == "socks5" and by in (by_httpx, by_httpx_in_a_task):
        failing.remove("hangs")  # httpx waits without end for a SOCKS5 proxy that says nothing; its timeout is not for that
    for name in failing:
        host = "192.0.2.1" if by is by_impit else "shop.example"
        seen = seen_by(by, f"{scheme}://{host}/", peers.proxy(kind, name), 2 if name == "hangs" else 30)
        assert seen in FAILING[name] and (scheme == "http" or "status" not in seen), (name, seen)


# Hopline's own requests, where the program's HTTP client goes through a proxy.

THROUGH = [("http", name) for name in ("requests", "urllib3", "httpx", "async-httpx", "async-aiohttp")]
THROUGH += [("socks5", name) for name in ("requests", "httpx", "async-httpx")]


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(("kind", "name"), THROUGH)
def test_a_purchase_through_a_proxy_that_fails_is_not_made_and_not_lost(
    kind: str, name: str, tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests prefers them to what its session says
        monkeypatch.delenv(variable, raising=False)
    service = Sandbox(*(("--tls", str(tmp_path)) if tls else ()), "--balance", "100000")
    account = {**service.account, **({"base_url": service.ready["tls_right"]} if tls else {})}
    peers = Peers()
    try:
        for proxy in sorted(peers.ready[kind], key=lambda proxy: proxy == "right"):
            given = through(name, peers.proxy(kind, proxy), service.ready.get("tls_ca"))
            error = bought(given, account, 2.0 if proxy == "hangs" else 20.0)
            if proxy == "right":
                assert isinstance(error, hopline.Session) and service.charges() == 1, error
                continue
            assert isinstance(error, hopline.HoplineError) and service.charges() == 0, proxy
            assert error.effect == "none" or isinstance(error, hopline.InDoubt) and error.record, proxy
            # httpx tells when it begins to send: behind a tunnel that never came about it did not.
            if proxy == "dead" or "httpx" in name and (tls or kind == "socks5") and proxy != "hangs":
                assert error.effect == "none" and not error.record, (proxy, error)
    finally:
        peers.close()
        service.close()


def through(name: str, proxy: hopline.Proxy, ca: str | None) -> Any:
    """An HTTP client that goes through a proxy, made as its own people make it; those for tasks are made in one."""
    match name:
        case "requests":
            session = requests.Session()
            session.proxies.update(proxy.for_requests()["proxies"])
            session.verify = ca or True
            return session
        case "urllib3":
            assert proxy.username and proxy.password
            login = urllib3.make_headers(proxy_basic_auth=f"{proxy.username.reveal()}:{proxy.password.reveal()}")
            return urllib3.ProxyManager(f"http://{proxy.host}:{proxy.port}", proxy_headers=login, ca_certs=ca)
        case "httpx":
            return httpx.Client(**proxy.for_httpx(), verify=trusting(ca))
        case "async-httpx":
            return lambda: httpx.AsyncClient(**proxy.for_httpx(), verify=trusting(ca))
    return lambda: aiohttp.ClientSession(**proxy.for_aiohttp(), connector=aiohttp.TCPConnector(ssl=trusting(ca)))


def bought(http: Any, account: dict[str, str], timeout: float) -> Any:
    options: dict[str, Any] = {**account, "attempts": 1, "timeout": timeout}

    async def life() -> Any:
        async with http() as client, hopline.AsyncAgentClient(**options, http=client) as agent:
            return await agent.create_session(**BUY)

    try:
        if not isinstance(http, requests.Session | urllib3.PoolManager | httpx.Client):
            return asyncio.run(life())
        with hopline.AgentClient(**options, http=http) as agent:
            return agent.create_session(**BUY)
    except hopline.HoplineError as error:
        return error
