"""A session's proxy, used by the HTTP clients that people have, over real sockets."""

import asyncio
import os
import shutil
import subprocess
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
import curl_cffi
import hopline
import httpx
import pytest
import requests
from sandbox import Sandbox

ODD = {"username": hopline.Secret("user@1:/"), "password": hopline.Secret("p%ss:w@rd /?#[]é\"\\")}


def opened(agent: hopline.AgentClient, protocol: Any) -> hopline.Proxy:
    return agent.open_session(session_type="dynamic", product_no="dynamic-world", protocol=protocol, credentials=True).proxy


def by_aiohttp(url: str, settings: hopline.Settings) -> str:
    async def get() -> str:
        async with aiohttp.ClientSession() as session, session.get(url, **settings) as answer:
            return str((await answer.json())["address"])

    return asyncio.run(get())


def by_httpx(url: str, settings: hopline.Settings) -> str:
    with httpx.Client(**settings, trust_env=False) as client:
        return str(client.get(url).json()["address"])


def by_requests(url: str, settings: hopline.Settings) -> str:
    with requests.Session() as session:
        session.trust_env = False
        return str(session.get(url, **settings, timeout=10).json()["address"])


@pytest.mark.parametrize("protocol", ["socks5", "http"])
def test_a_page_is_fetched_through_the_session(protocol: str, sandbox: Sandbox) -> None:
    # A name that only the proxy has to know.
    url = sandbox.ready["target_url"].replace("127.0.0.1", "shop.localhost")
    with hopline.AgentClient(**sandbox.account) as agent:
        proxy = opened(agent, protocol)
        [session] = sandbox.state()["sessions"]
        seen = [by_requests(url, proxy.for_requests()), by_httpx(url, proxy.for_httpx())]
        if protocol == "http":
            seen.append(by_aiohttp(url, proxy.for_aiohttp()))
        # Where all is to be checked, a missing curl is a failure.
        if shutil.which("curl") or os.environ.get("CI") == "true":
            told = proxy.for_curl().reveal()
            ran = subprocess.run(["curl", "-sS", "--config", "-", url], input=told, capture_output=True, text=True, timeout=20)
            assert ran.returncode == 0, ran.stderr
            seen.append(ran.stdout.split('"address":"')[1].split('"')[0])
        assert len(seen) >= 2 and set(seen) == {session["exit"]}


def test_what_can_not_speak_the_protocol_names_the_one_to_buy(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        proxy = opened(agent, "socks5")
        for settings in (proxy.for_aiohttp, proxy.for_playwright):
            with pytest.raises(hopline.Invalid, match="buy the session with `protocol` http") as caught:
                settings()
            assert caught.value.field == "protocol" and caught.value.effect == "none"
        through = opened(agent, "http")
        assert through.username and through.password and through.for_playwright()["proxy"] == {
            "server": f"http://{through.host}:{through.port}",
            "username": through.username.reveal(),
            "password": through.password.reveal(),
        }


@pytest.mark.parametrize("client", ["aiohttp", "playwright"])
def test_a_session_that_its_user_can_not_speak_to_is_refused_before_it_is_bought(client: Any, sandbox: Sandbox) -> None:
    buy: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "use_with": client}
    socks = {"protocol": "socks5"}

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            with pytest.raises(hopline.Invalid, match="`protocol` http"):
                await agent.open_session(**buy, **socks)

    with hopline.AgentClient(**sandbox.account) as agent:
        with pytest.raises(hopline.Invalid, match="`protocol` http") as caught:
            agent.open_session(**buy, **socks)
        assert caught.value.effect == "none" and caught.value.field == "protocol"
        asyncio.run(life())
        with pytest.raises(hopline.Invalid, match="`use_with` must be one of `requests`"):
            agent.open_session(**{**buy, "use_with": "lynx"})
        assert sandbox.charges() == 0
        # Where no protocol is named, one is chosen that the client supports, and that is not compared under an intent.
        for _ in range(2):
            session = agent.open_session(**buy, intent="a", keep=True)
            assert session.phase == "ready" and session.session.proxy.protocol == "http"
        assert sandbox.charges() == 1


def test_settings_that_are_given_as_proxies_in_place_of_keywords_lead_through_the_session_all_the_same(sandbox: Sandbox) -> None:
    buy: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "use_with": "requests"}
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_session(**buy) as session:
        [exit] = [one["exit"] for one in sandbox.state()["sessions"]]
        settings, url = session.proxy.for_requests(), sandbox.ready["target_url"]
        assert list(settings) == ["proxies"] and "password" not in repr(settings)
        with requests.Session() as http:
            http.trust_env = False
            assert http.get(url, proxies=settings, timeout=30).json()["address"] == exit
            http.proxies = settings
            assert http.get(url, timeout=30).json()["address"] == exit
        answer: Any = curl_cffi.requests.get(url, proxies=settings, timeout=30)  # type: ignore[arg-type]
        assert answer.json()["address"] == exit


@pytest.mark.parametrize("client", ["httpx2", "curl_cffi"])
def test_a_session_is_bought_for_a_client_that_takes_what_another_does(client: Any, sandbox: Sandbox) -> None:
    buy: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "use_with": client}
    with hopline.AgentClient(**sandbox.account) as agent:
        assert agent.open_session(**buy).phase == "ready"
        with agent.open_pool("shop", size=1, daily_cap_usd=100, **buy) as pool, pool.acquire() as lease:
            assert lease.proxy.url()


@pytest.mark.parametrize("client", ["requests", "httpx", "aiohttp", "playwright"])
def test_a_pool_for_a_client_has_a_protocol_that_the_client_speaks_by_itself(client: Any, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    buy: dict[str, Any] = {"size": 1, "session_type": "dynamic", "product_no": "dynamic-world", "daily_cap_usd": 100, "use_with": client}

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent, agent.open_pool("tasks", **buy) as pool, pool.acquire() as lease:
            assert lease.proxy.protocol == "http"

    with hopline.AgentClient(**sandbox.account) as agent:
        with agent.open_pool("shop", **buy) as pool, pool.acquire() as lease:
            assert lease.proxy.protocol == "http"
        asyncio.run(life())
        # A protocol that is named stays, and is refused in the pool's own name where the client can't speak it.
        with pytest.raises(hopline.Invalid, match="^open_pool: `protocol` ") as caught:
            agent.open_pool("other", **buy, protocol="socks5")
        assert caught.value.operation == "open_pool" and caught.value.field == "protocol" and caught.value.effect == "none"
    assert sandbox.charges() == 2


@pytest.mark.parametrize("client", ["requests", "httpx", "httpx2"])
def test_an_http_client_without_its_package_for_socks_is_told_which(
    client: Any, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        buy: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "protocol": "socks5", "use_with": client}
        proxy = agent.open_session(**buy).proxy
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(hopline.Invalid, match=r"pip install hopline\[socks\]"):
            agent.open_session(**buy)
        with pytest.raises(hopline.Invalid, match=r"pip install hopline\[socks\]"):
            proxy.for_requests() if client == "requests" else proxy.for_httpx()
    assert sandbox.charges() == 1


@pytest.mark.parametrize("host", ['h"\nurl = "x', "h\n", "a b", "h/..", "user@h", ""])
def test_a_host_that_is_none_goes_into_no_url_and_no_configuration(host: str) -> None:
    proxy = hopline.Proxy(host=host, port=1, protocol="http", **ODD)
    for settings in (proxy.url, proxy.for_requests, proxy.for_httpx, proxy.for_aiohttp, proxy.for_playwright, proxy.for_curl):
        with pytest.raises(hopline.Invalid, match="`host`"):
            settings()
    bracketed = hopline.Proxy(host="[::1]", port=1, protocol="http", **ODD)
    assert urlsplit(bracketed.url().reveal()).hostname == "::1"


def test_credentials_survive_the_url_whatever_they_are() -> None:
    proxy = hopline.Proxy(host="2001:db8::1", port=1080, protocol="socks5", **ODD)
    url = urlsplit(proxy.url().reveal())
    assert (url.scheme, url.hostname, url.port) == ("socks5h", "2001:db8::1", 1080)
    assert [unquote(url.username or ""), unquote(url.password or "")] == [secret.reveal() for secret in ODD.values()]
    assert hopline.Proxy(host="gate.example", port=8080, protocol="http", **ODD).url().reveal().startswith("http://")
    assert hopline.Proxy(host="gate.example", port=8080, protocol="https", **ODD).url().reveal().startswith("https://")
    # The service may speak plain HTTP where it sells https, and its URL says so.
    plain = hopline.Proxy(host="gate.example", port=8080, protocol="https", full_url=hopline.Secret("http://x"), **ODD)
    assert plain.url().reveal().startswith("http://")


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        (hopline.Proxy(host="h", port=1, protocol="socks5"), "`username` and password are missing, since they were not requested; use `credentials`"),
        (hopline.Proxy(protocol="socks5", **ODD), "`host` and port are missing"),
        (hopline.Proxy(host="h", port=1, protocol="quic", **ODD), "`protocol` is missing or unknown"),
        (hopline.Proxy(host="h", port=1, **ODD), "`protocol` is missing or unknown"),
    ],
)
def test_a_proxy_that_is_not_complete_says_what_to_do(proxy: hopline.Proxy, said: str) -> None:
    for settings in (proxy.url, proxy.for_requests, proxy.for_httpx, proxy.for_aiohttp, proxy.for_playwright, proxy.for_curl):
        with pytest.raises(hopline.Invalid) as caught:
            settings()
        assert "p%ss" not in str(caught.value)
    with pytest.raises(hopline.Invalid, match=said):
        proxy.url()


def test_what_a_program_gives_as_plain_text_does_not_print() -> None:
    proxy: Any = hopline.Proxy(host="h", port=1, protocol="http", username="plain-name", password="plain-word", full_url="http://plain")  # type: ignore[arg-type]
    assert "plain" not in repr(proxy) and proxy.password.reveal() == "plain-word"
    assert proxy.url().reveal() == "http://plain-name:plain-word@h:1"


def test_settings_do_not_print() -> None:
    proxy = hopline.Proxy(host="h", port=1, protocol="http", username=hopline.Secret("canary-u"), password=hopline.Secret("canary-p"))
    made: list[object] = [proxy.url(), proxy.for_requests(), proxy.for_httpx(), proxy.for_aiohttp(), proxy.for_playwright(), proxy.for_curl()]
    made += [one for settings in made if isinstance(settings, dict) for one in settings.values() if not isinstance(one, str)]
    assert len(made) == 8
    assert "canary" not in f"{made} {proxy}" + "".join(f"{one} {one!r}" for one in made)
