"""A session as a handle: its verbs, what it shows, and what is made of the responses and exceptions of HTTP clients."""

import asyncio
import errno
import socket
import ssl
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hopline
import httpx
import pytest
import requests
from browsing import EACH, By, seen_by
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
    protocol: Any, by: By, sandbox: Sandbox, closed_port: int
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


def test_what_failed_before_is_another_requests() -> None:
    answer = requests.Response()
    answer.status_code = 403
    try:
        try:
            raise requests.HTTPError("403", response=answer)
        except requests.HTTPError:
            raise ConnectionResetError(errno.ECONNRESET, "of the next request")
    except ConnectionResetError as error:
        assert seen_text(error) == UNKNOWN
