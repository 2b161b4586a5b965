"""A session as a handle: its verbs, what it shows, and what is made of the responses and exceptions of HTTP clients."""

import asyncio
import errno
import io
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import curl_cffi.requests
import hopline
import httpx
import httpx2
import impit
import pycurl
import pytest
import requests
import urllib3
from aiohttp_socks import ProxyConnector
from conftest import BUY
from hopline._seen import seen_text
from sandbox import Sandbox

PROXY, TARGET, TIMEOUT, UNKNOWN = '"proxy"', '"target"', '"timeout"', '"unknown"'


def test_a_handle_has_verbs_and_shows_the_newest_state_whoever_has_read_it(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        opened = agent.open_session(**BUY, credentials=True, intent="job-1")
        other = agent.resume(intent="job-1", credentials=True)
        assert isinstance(other, hopline.OpenSession) and (opened.generation, opened.phase) == (0, "ready")
        before = opened.proxy.password
        assert before is not None and opened == other
        advice = opened.observe(403)
        assert advice is not None and (advice.verdict, advice.reason) == ("rotate", "http_403")
        rotated = opened.rotate("http_403")
        assert rotated.proxy is not None and opened.proxy.password == rotated.proxy.password != before
        assert opened.generation == other.generation == 1 and other.proxy == opened.proxy
        # A call of the client itself is seen as well; what it did not ask for is as it was.
        agent.get_session(session_id=opened.session_id)
        assert opened.session.proxy is not None and opened.session.proxy.password == rotated.proxy.password and opened.generation == 1
        agent.rotate_session(session_id=opened.session_id)
        assert opened.generation == 2 and opened.proxy.password is None
        assert agent.get_session(session_id=opened.session_id, include_credentials=True).proxy == opened.proxy
        assert opened.generation == 2 and opened.proxy.password != rotated.proxy.password
        opened.refresh()
        assert opened.generation == 2 and opened.proxy.password is not None and opened.session.status == "active"
        opened.terminate()
        assert opened.phase == other.phase == "ended"
        assert other.refresh().status == "terminated" == opened.session.status
        plain = opened.__replace__(phase="unknown")
        assert type(plain) is hopline.SessionReply and plain.phase == "unknown"
    assert [session["status"] for session in sandbox.state()["sessions"]] == ["terminated"]


def test_a_rotation_that_many_wait_for_is_one_generation(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            async with agent.open_session(**BUY, credentials=True, auto_rotate=True) as session:
                sandbox.fault("rotate_session", kind="delay", ms=1000)
                seen = await asyncio.gather(*(session.observe("block") for _ in range(20)))
                assert {one.verdict for one in seen if one} == {"rotated"} and session.generation == 1
                await session.rotate()
                assert session.generation == 2
                await session.refresh()
                assert session.generation == 2 and session.phase == "ready"

    asyncio.run(life())
    assert [session["status"] for session in sandbox.state()["sessions"]] == ["terminated"]


@pytest.mark.parametrize("intent", [None, "job-1"])
def test_a_scope_ends_its_session_though_a_rotation_of_it_was_cancelled_and_is_in_doubt(sandbox: Sandbox, intent: str | None) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            async with agent.open_session(**BUY, intent=intent) as session:
                sandbox.fault("rotate_session", kind="delay", ms=3000)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(session.rotate(), 0.3)

    asyncio.run(life())
    assert [session["status"] for session in sandbox.state()["sessions"]] == ["terminated"]


def by_requests(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, **proxy.for_requests(), timeout=seconds)


def by_httpx(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    with httpx.Client(**proxy.for_httpx(), trust_env=False, timeout=seconds) as client:
        return client.get(url)


def by_aiohttp(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    async def get() -> Any:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session, session.get(url, **proxy.for_aiohttp()) as answer:
            await answer.read()
            return answer

    return asyncio.run(get())


def by_urllib3(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    assert proxy.username and proxy.password
    login = urllib3.make_headers(proxy_basic_auth=f"{proxy.username.reveal()}:{proxy.password.reveal()}")
    with urllib3.ProxyManager(f"http://{proxy.host}:{proxy.port}", proxy_headers=login) as pool:
        return pool.request("GET", url, timeout=seconds, retries=False)


def by_urllib3_repeating(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    assert proxy.username and proxy.password
    login = urllib3.make_headers(proxy_basic_auth=f"{proxy.username.reveal()}:{proxy.password.reveal()}")
    with urllib3.ProxyManager(f"http://{proxy.host}:{proxy.port}", proxy_headers=login) as pool:
        return pool.request("GET", url, timeout=seconds, retries=1)


def by_urllib(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    told = proxy.url().reveal()
    return urllib.request.build_opener(urllib.request.ProxyHandler({"http": told, "https": told})).open(url, timeout=seconds)


HTTP = [by_requests, by_httpx, by_aiohttp, by_urllib3, by_urllib3_repeating, by_urllib]
def by_httpx_in_a_task(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    async def get() -> Any:
        async with httpx.AsyncClient(**proxy.for_httpx(), trust_env=False, timeout=seconds) as client:
            return await client.get(url)

    return asyncio.run(get())


def by_httpx2(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    with httpx2.Client(proxy=proxy.url().reveal().replace("socks5h:", "socks5:"), trust_env=False, timeout=seconds) as client:
        return client.get(url)


def by_aiohttp_socks(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    async def get() -> Any:
        connector = ProxyConnector.from_url(proxy.url().reveal().replace("socks5h:", "socks5:"), rdns=True)
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=seconds))
        async with session, session.get(url) as answer:
            await answer.read()
            return answer

    return asyncio.run(get())


def by_curl_cffi(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    return curl_cffi.requests.get(url, proxy=proxy.url().reveal(), timeout=seconds)


def by_pycurl(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    curl = pycurl.Curl()
    for option, value in ((curl.URL, url), (curl.PROXY, proxy.url().reveal()), (curl.TIMEOUT_MS, int(seconds * 1000)), (curl.WRITEDATA, io.BytesIO())):
        curl.setopt(option, value)
    curl.perform()
    return curl.getinfo(curl.RESPONSE_CODE)


def by_impit(url: str, proxy: hopline.Proxy, seconds: float) -> Any:
    return impit.Client(proxy=proxy.url().reveal().replace("socks5h:", "socks5:"), timeout=seconds).get(url)


BOTH = [by_requests, by_httpx, by_httpx2, by_aiohttp_socks, by_curl_cffi, by_pycurl, by_impit]
EACH = [("http", by) for by in {*HTTP, *BOTH, by_httpx_in_a_task}] + [("socks5", by) for by in BOTH]
EACH.sort(key=lambda each: (each[0], each[1].__name__))


def seen_by(by: Callable[[str, hopline.Proxy, float], Any], url: str, proxy: hopline.Proxy, seconds: float = 30) -> str:
    """What the core is told of what came of a request."""
    try:
        return seen_text(by(url, proxy, seconds))
    except Exception as error:
        return seen_text(error)


@contextmanager
def listening() -> Iterator[int]:
    """A port where connections are taken, and nobody ever answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        yield silent.getsockname()[1]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port where nobody listens, nor anybody else will meanwhile."""
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        yield gone.getsockname()[1]


@pytest.mark.parametrize(("protocol", "by"), EACH)
def test_the_proxys_failures_are_told_apart_from_the_targets(
    protocol: Any, by: Callable[[str, hopline.Proxy, float], Any], sandbox: Sandbox, closed_port: int
) -> None:
    site = sandbox.ready["target_url"]
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_session(**BUY, protocol=protocol, credentials=True) as session:
        sound = session.proxy
        wrong = sound.__replace__(password=hopline.Secret("wrong"), full_url=None)
        gone = sound.__replace__(port=closed_port, full_url=None)
        assert seen_by(by, site, sound) == '{"status": 200}'
        assert seen_by(by, f"{site}missing", sound).startswith('{"status": ')
        assert seen_by(by, site, wrong) in (PROXY, '{"status": 407}')
        assert seen_by(by, site.replace("http:", "https:"), wrong) == PROXY
        assert seen_by(by, site, gone) == PROXY
        assert seen_by(by, site.replace("http:", "https:"), gone) == PROXY
        with listening() as port:
            assert seen_by(by, f"http://127.0.0.1:{port}/", sound, 1) == TIMEOUT
            assert seen_by(by, f"https://127.0.0.1:{port}/", sound, 1) in (TIMEOUT, TARGET)
        # The target speaks no TLS, and then nobody listens there.
        assert seen_by(by, site.replace("http:", "https:"), sound) == TARGET
        assert seen_by(by, f"https://127.0.0.1:{closed_port}/", sound) == TARGET
        assert seen_by(by, f"http://127.0.0.1:{closed_port}/", sound) in (TARGET, '{"status": 502}')
        advice = session.observe(urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")))
        assert advice is not None and advice.verdict == "unsure" and "proxy" in (advice.why or "")
        advice = session.observe(ssl.SSLError("not TLS"))
        assert advice is not None and advice.verdict == "unsure" and "target" in (advice.why or "")
        blocked = session.observe(hopline.Response(status=403))
        assert blocked is not None and blocked.verdict == "rotate"


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("can't be printed")


def test_what_is_odd_about_an_exception_is_no_hindrance() -> None:
    around: list[Any] = ["half a pair: \ud800", {"n": 1}]
    around.append(around)
    outer = OSError(around, Odd())
    outer.__cause__ = ExceptionGroup("two", [ValueError("x" * 100_000), outer])
    assert seen_text(outer) == UNKNOWN
    outer.__cause__ = ExceptionGroup("two", [ValueError("half a pair: \udc00"), ConnectionRefusedError(errno.ECONNREFUSED, "refused")])
    assert seen_text(outer) == PROXY
    deep: BaseException = TimeoutError()
    for _ in range(5000):
        deep = RuntimeError(deep)
    assert seen_text(deep) == UNKNOWN


def test_three_failures_in_a_row_that_say_nothing_are_a_reason_to_read_the_session(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_session(**BUY) as session:
        advice = [session.observe(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")) for _ in range(3)]
        assert [(one.verdict, "read the session" in (one.why or "")) for one in advice if one] == [("unsure", False)] * 2 + [("unsure", True)]


def test_what_a_status_was_raised_as_is_that_status() -> None:
    answer = requests.Response()
    answer.status_code = 429
    request = httpx.Request("GET", "https://shop.example/")
    for error in (
        requests.HTTPError("429", response=answer),
        httpx.HTTPStatusError("429", request=request, response=httpx.Response(429, request=request)),
        urllib.error.HTTPError("https://shop.example/", 429, "Too Many Requests", {}, None),  # type: ignore[arg-type]
        answer,
        429,
    ):
        assert seen_text(error) == '{"status": 429}'
    assert seen_text(KeyError("price")) == UNKNOWN and seen_text("captcha") == '"captcha"' and seen_text(TimeoutError()) == TIMEOUT
    for nothing in (True, None, "ban", object()):
        with pytest.raises(hopline.Invalid, match="observe: `seen` must be an HTTP status"):
            seen_text(nothing)  # type: ignore[arg-type]
