"""Each HTTP client that the README names against the odd server and the proxies that all hosts share; see `tests/peers`."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import aiohttp
import hopline
import httpx
import pytest
import requests
from conftest import BUY
from sandbox import Sandbox
from test_transports import BOTH, outcomes

SLOW = {"late": "-50", "early-hints": "-50"}
ATTEMPTS = {"attempts": 4, "window": 60.0, "timeout": 20.0}


class Peers:
    """The program, and what it says that it is."""

    def __init__(self, *options: str) -> None:
        program = os.environ["HOPLINE_PEERS"]
        self._process = subprocess.Popen([program, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def logins(self) -> list[dict[str, Any]]:
        with requests.Session() as session:
            session.trust_env = False
            found: list[dict[str, Any]] = session.get(self.ready["control_url"]).json()["logins"]
            session.delete(self.ready["control_url"])
        return found


@pytest.fixture
def peers(sandbox: Sandbox) -> Iterator[Peers]:
    running = Peers("--service", sandbox.account["base_url"].removesuffix("/v1"))
    yield running
    running.close()


@pytest.mark.parametrize("which", BOTH)
def test_a_purchase_before_an_odd_server_is_made_once_and_each_request_gets_its_own_answer(which: str, sandbox: Sandbox, peers: Peers) -> None:
    sold: set[str] = set()
    for n, behaviour in enumerate(peers.ready["behaviours"]):
        name, kind = behaviour["name"], behaviour["answer"]
        account = {**sandbox.account, "base_url": f"{peers.ready['odd_url']}/{name}{SLOW.get(name, '')}.once/v1"}
        bought, other, read = outcomes(which, account, ("create_session", BUY), ("create_session", BUY), ("get_balance", {}), **ATTEMPTS)
        for one in (bought, other):
            assert isinstance(one, hopline.Session) and one.session_id not in sold, (name, one, getattr(one, "__notes__", None))
            sold.add(one.session_id)
        assert "balance" in read.raw and sandbox.charges() == 2 * n + 2, name
        if kind == "given":
            account["base_url"] = account["base_url"].replace(".once", ".reads")
            calls = [("get_session", {"session_id": one.session_id}) for one in (bought, other)]
            found = outcomes(which, account, *calls, attempts=1, timeout=20.0)
            assert [one.session_id for one in found] == [bought.session_id, other.session_id], (name, found)


# A session's proxy as HTTP clients log in to it.


def proxy_of(peers: Peers, kind: str, name: str, username: str, password: str) -> hopline.Proxy:
    host, _, port = peers.ready[kind][name].rpartition(":")
    protocol: Any = kind
    return hopline.Proxy(host=host, port=int(port), protocol=protocol, username=hopline.Secret(username), password=hopline.Secret(password))


async def fetch(client: str, proxy: hopline.Proxy) -> object:
    """What a request through it met."""
    url = "http://shop.example/"
    try:
        match client:
            case "requests":
                with requests.Session() as session:
                    session.trust_env = False
                    return session.get(url, **proxy.for_requests(), timeout=5)
            case "httpx":
                with httpx.Client(**proxy.for_httpx(), trust_env=False) as client_of_httpx:
                    return client_of_httpx.get(url, timeout=5)
            case _:
                async with aiohttp.ClientSession() as session_of_aiohttp:
                    timeout = aiohttp.ClientTimeout(total=5)
                    async with session_of_aiohttp.get(url, **proxy.for_aiohttp(), timeout=timeout) as response:
                        return response
    except Exception as error:
        return error


LOGINS = [("søren", "SØREN"), ("ĘdwardĄcki1", "pässword"), ("u" * 120 + "-country-us", "p" * 127), ("user", "%2F:@/ ?#")]


@pytest.mark.parametrize("username_password", LOGINS)
@pytest.mark.parametrize(("client", "kind"), [("requests", "http"), ("httpx", "http"), ("aiohttp", "http"), ("requests", "socks5"), ("httpx", "socks5")])
def test_a_proxy_is_given_the_login_as_it_is(client: str, kind: str, username_password: tuple[str, str], peers: Peers) -> None:
    import asyncio

    username, password = username_password
    proxy = proxy_of(peers, kind, "right", username, password)
    if kind == "socks5" and client == "requests" and max(len(username.encode()), len(password.encode())) > 127:
        with pytest.raises(hopline.Invalid, match="longer than the 127 bytes"):
            proxy.for_requests()
        return
    met: Any = asyncio.run(fetch(client, proxy))
    assert (getattr(met, "status_code", None) or met.status) == 200, met
    [login] = [login for login in peers.logins() if login["username"] is not None]
    assert (bytes.fromhex(login["username"]).decode(), bytes.fromhex(login["password"]).decode()) == (username, password)
