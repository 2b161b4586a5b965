"""TLS with an authority of one's own: what it has signed is trusted, and a certificate that is refused sends nothing."""

import asyncio
import pathlib
import ssl
from collections.abc import Iterator
from typing import Any

import aiohttp
import hopline
import httpx
import pytest
import requests
import urllib3
from conftest import BUY
from sandbox import Sandbox

CLIENTS = ["sync-stdlib", "sync-requests", "sync-httpx", "sync-urllib3", "async-threads", "async-httpx", "async-aiohttp"]


@pytest.fixture
def served(tmp_path: pathlib.Path) -> Iterator[Sandbox]:
    running = Sandbox("--tls", str(tmp_path), "--provisioning-ms", "0")
    yield running
    running.close()


def trusting(which: str, ca: str) -> Any:
    """An HTTP client that trusts an authority, made as its own people make it."""
    match which:
        case "sync-requests":
            session = requests.Session()
            session.verify = ca
            return session
        case "sync-httpx":
            return httpx.Client(verify=ssl.create_default_context(cafile=ca))
        case "sync-urllib3":
            return urllib3.PoolManager(ca_certs=ca)
        case "async-httpx":
            return httpx.AsyncClient(verify=ssl.create_default_context(cafile=ca))
        case "async-aiohttp":
            return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca)))
    return None


def bought(which: str, served: Sandbox, url: str) -> Any:
    """The result of a purchase that is sent once."""
    account = {**served.account, "base_url": url, "attempts": 1}

    async def life() -> Any:
        http = trusting(which, served.ready["tls_ca"])
        try:
            async with hopline.AsyncAgentClient(**account, http=http) as agent:
                return await agent.create_session(**BUY, intent="job")
        finally:
            if isinstance(http, httpx.AsyncClient):
                await http.aclose()
            elif http:
                await http.close()

    try:
        if which.startswith("async"):
            return asyncio.run(life())
        with hopline.AgentClient(**account, http=trusting(which, served.ready["tls_ca"])) as agent:
            return agent.create_session(**BUY, intent="job")
    except hopline.HoplineError as error:
        return error


@pytest.fixture(autouse=True)
def environment(served: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library trusts whom OpenSSL's own variable names."""
    monkeypatch.setenv("SSL_CERT_FILE", served.ready["tls_ca"])
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests prefers them to what its session says
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("which", CLIENTS)
def test_a_purchase_goes_to_a_service_whose_certificate_the_authority_has_signed(which: str, served: Sandbox) -> None:
    assert isinstance(bought(which, served, served.ready["tls_right"]), hopline.Session)
    assert served.charges() == 1


@pytest.mark.parametrize("which", CLIENTS)
@pytest.mark.parametrize("certificate", ["tls_wrong_name", "tls_expired", "tls_unknown_ca"])
def test_a_certificate_that_is_refused_sends_nothing_and_that_is_known(which: str, certificate: str, served: Sandbox) -> None:
    error = bought(which, served, served.ready[certificate])
    assert isinstance(error, hopline.Unavailable) and error.effect == "none" and not error.record, repr(error)
    assert "no secure connection could be made" in str(error), repr(error)
    assert served.charges() == 0


def test_a_client_makes_one_tls_context(served: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ssl.SSLContext] = []
    make = ssl.create_default_context

    def counted(*arguments: Any, **options: Any) -> ssl.SSLContext:
        made.append(make(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    with hopline.AgentClient(**{**served.account, "base_url": served.ready["tls_right"]}) as agent:
        for intent in ("first", "second"):
            agent.create_session(**BUY, intent=intent)
    assert len(made) == 1 and served.charges() == 2
