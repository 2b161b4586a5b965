"""Substitutes for an HTTP client in other people's tests. Either it answers, or the call fails: nothing is bought from the service."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import aiohttp
import aiohttp_client_cache
import aioresponses
import hishel
import hishel.httpx
import hopline
import httpx
import pytest
import pytest_httpx
import requests
import requests_cache
import requests_mock
import responses
import respx
import urllib3
import vcr
from conftest import BUY
from sandbox import Sandbox

MOCKED = {"success": True, "data": {"session_id": "s-mock", "session_type": "dynamic", "status": "active"}}


def buy(sandbox: Sandbox, http: Any) -> str | hopline.HoplineError:
    """The session that was bought, or why none was."""

    async def life() -> str:
        async with hopline.AsyncAgentClient(**sandbox.account, http=http(), attempts=1) as agent:
            return (await agent.create_session(**BUY)).session_id or ""

    try:
        if isinstance(http, type):
            return asyncio.run(life())
        with hopline.AgentClient(**sandbox.account, http=http, attempts=1) as agent:
            return agent.create_session(**BUY).session_id or ""
    except hopline.HoplineError as error:
        return error


# Test tools that answer.


@contextmanager
def with_requests_mock(url: str, **options: Any) -> Iterator[Any]:
    with requests.Session() as session, requests_mock.Mocker(**{name: session for name in options}) as mocker:
        mocker.post(url, json=MOCKED, status_code=202)
        yield session


@contextmanager
def with_responses(url: str) -> Iterator[Any]:
    with responses.RequestsMock() as mocker, requests.Session() as session:
        mocker.post(url, json=MOCKED, status=202)
        yield session


@contextmanager
def with_respx(url: str) -> Iterator[Any]:
    with respx.mock() as router, httpx.Client() as client:
        router.post(url).respond(202, json=MOCKED)
        yield client


@contextmanager
def with_respx_for_tasks(url: str) -> Iterator[Any]:
    with respx.mock() as router:
        router.post(url).respond(202, json=MOCKED)
        yield httpx.AsyncClient


@contextmanager
def with_aioresponses(url: str) -> Iterator[Any]:
    with aioresponses.aioresponses() as mocker:
        mocker.post(url, payload=MOCKED, status=202)
        yield aiohttp.ClientSession


@contextmanager
def with_a_patched_urlopen(url: str) -> Iterator[Any]:
    import io
    import json

    def urlopen(pool: Any, *given: Any, **settings: Any) -> Any:
        return urllib3.HTTPResponse(io.BytesIO(json.dumps(MOCKED).encode()), status=202, preload_content=False)

    with mock.patch.object(urllib3.HTTPConnectionPool, "urlopen", urlopen):
        yield urllib3.PoolManager()


ANSWERING = [
    with_requests_mock,
    partial(with_requests_mock, session=True),
    with_responses,
    with_respx,
    with_respx_for_tasks,
    with_a_patched_urlopen,
]
SILENT = [*ANSWERING, with_aioresponses]
"""aioresponses can't answer with the aiohttp of these tests."""


@pytest.mark.parametrize("tool", ANSWERING)
def test_a_test_tool_answers_in_place_of_the_service(tool: Callable[[str], Any], sandbox: Sandbox) -> None:
    with tool(f"{sandbox.account['base_url']}/sessions") as http:
        assert buy(sandbox, http) == "s-mock"
    assert sandbox.requests() == []


@pytest.mark.parametrize("tool", SILENT)
def test_what_a_test_tool_does_not_know_reaches_no_service(tool: Callable[[str], Any], sandbox: Sandbox) -> None:
    found: list[Any] = []
    with suppress(AssertionError), tool("https://another.example/v1/sessions") as http:  # some say that they were never called
        found.append(buy(sandbox, http))
    # A substitute for all sends answers here, too.
    assert isinstance(found[0], hopline.HoplineError) or tool is with_a_patched_urlopen
    assert sandbox.requests() == []


# The errors that they raise: the request may have been sent, since nothing told of a connection that did not come about.

FAILURES = [httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError, httpx.ConnectError, httpx.ConnectTimeout, LookupError]
BOTH = pytest.mark.parametrize("kind", [httpx.Client, httpx.AsyncClient])


def failed(sandbox: Sandbox, kind: Any) -> hopline.Effect:
    found = buy(sandbox, kind() if kind is httpx.Client else kind)
    assert isinstance(found, hopline.HoplineError) and sandbox.requests() == []
    return found.effect


@BOTH
@pytest.mark.parametrize("using", ["httpcore", "httpx"])
@pytest.mark.parametrize("failure", FAILURES)
def test_what_respx_raises_may_have_been_sent(failure: Any, using: str, kind: Any, sandbox: Sandbox) -> None:
    with respx.mock(using=using) as router:
        router.post(f"{sandbox.account['base_url']}/sessions").mock(side_effect=failure("a test fails"))
        assert failed(sandbox, kind) == "unknown"


@BOTH
@pytest.mark.parametrize("failure", FAILURES)
def test_what_pytest_httpx_raises_may_have_been_sent(failure: Any, kind: Any, sandbox: Sandbox, httpx_mock: pytest_httpx.HTTPXMock) -> None:
    httpx_mock.add_exception(failure("a test fails"))
    assert failed(sandbox, kind) == "unknown"


@pytest.mark.parametrize("failure", FAILURES)
def test_what_respx_raises_for_a_write_without_a_key_is_not_sent_again(failure: Any, sandbox: Sandbox) -> None:
    with respx.mock() as router, httpx.Client() as http, hopline.AgentClient(**sandbox.account, http=http, attempts=3) as agent:
        route = router.post(f"{sandbox.account['base_url']}/other").mock(side_effect=failure("a test fails"))
        with pytest.raises(hopline.InDoubt):
            agent.request("POST", "/other")
        assert route.call_count == 1


@BOTH
@pytest.mark.parametrize("failure", [httpx.PoolTimeout, httpx.UnsupportedProtocol])
def test_what_says_by_its_name_that_nothing_was_sent_had_no_effect(failure: Any, kind: Any, sandbox: Sandbox) -> None:
    with respx.mock() as router:
        router.post(f"{sandbox.account['base_url']}/sessions").mock(side_effect=failure("a test fails"))
        assert failed(sandbox, kind) == "none"


# Substitutes for a method that a program of one's own would call, and Hopline might not.

REQUESTS = [f"requests.Session.{name}" for name in ("send", "request", "post", "get_adapter")] + ["requests.adapters.HTTPAdapter.send"]
HTTPX = [f"httpx.Client.{name}" for name in ("send", "request", "post", "stream")]
HTTPX_FOR_TASKS = [f"httpx.AsyncClient.{name}" for name in ("send", "request", "post", "stream")]
AIOHTTP = [f"aiohttp.ClientSession.{name}" for name in ("request", "_request", "post")]
URLLIB3 = [f"urllib3.PoolManager.{name}" for name in ("request", "urlopen")] + ["urllib3.HTTPConnectionPool.urlopen"]
PATCHED = [
    *((name, requests.Session) for name in REQUESTS),
    *((name, httpx.Client) for name in HTTPX),
    *((name, httpx.AsyncClient) for name in HTTPX_FOR_TASKS),
    *((name, aiohttp.ClientSession) for name in AIOHTTP),
    *((name, urllib3.PoolManager) for name in URLLIB3),
]
FOR_TASKS = (httpx.AsyncClient, aiohttp.ClientSession)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("how", ["mock", "autospec", "fails"])
@pytest.mark.parametrize(("name", "kind"), PATCHED, ids=[name for name, _ in PATCHED])
def test_what_a_test_patches_reaches_no_service(name: str, kind: Any, how: str, sandbox: Sandbox) -> None:
    settings: dict[str, Any] = {"autospec": True} if how == "autospec" else {"side_effect": OSError("no network")} if how == "fails" else {}
    # Mocks for tasks leave coroutines that nobody awaits. They are dropped at the end, since Python can't warn of them inside of the
    # constructor of a named tuple, where the collector may come.
    gc.disable()
    try:
        with mock.patch(name, **settings):
            assert isinstance(buy(sandbox, kind if kind in FOR_TASKS else kind()), hopline.HoplineError)
    finally:
        gc.enable()
        gc.collect()
    assert sandbox.requests() == []


@pytest.mark.parametrize("name", ["send", "request", "post"])
@pytest.mark.parametrize("kind", [requests.Session, httpx.Client])
def test_the_same_for_one_client_and_after_hopline_has_it(name: str, kind: Any, sandbox: Sandbox) -> None:
    with kind() as http, hopline.AgentClient(**sandbox.account, http=http, attempts=1) as agent:
        with mock.patch.object(http, name), pytest.raises(hopline.HoplineError) as caught:
            agent.create_session(**BUY)
        assert sandbox.requests() == []
        if name != "send" or kind is requests.Session:
            assert caught.value.effect == "none" and f"`{name}` of its own" in str(caught.value.__notes__)
        assert agent.create_session(**BUY).session_id .startswith("ses_")


def test_a_session_of_a_tests_own_is_refused(sandbox: Sandbox) -> None:
    class Fake(requests.Session):
        def send(self, request: Any, **settings: Any) -> Any:
            raise AssertionError("it answers something else")

    class Verbs(requests.Session):
        def request(self, *given: Any, **settings: Any) -> Any:
            raise AssertionError("it answers something else")

    for kind in (Fake, Verbs):
        with kind() as session, pytest.raises(hopline.Misuse, match=r"of its own, which would be passed by; .* a callable that uses it"):
            hopline.AgentClient(**sandbox.account, http=session)
    assert sandbox.requests() == []


def with_hishel(path: Path) -> Any:
    return hishel.httpx.CacheClient(storage=hishel.SqliteStorage(database_path=path / "answers"))


def with_hishel_of_a_mount(path: Path) -> Any:
    return httpx.Client(mounts={"http://": hishel.httpx.CacheTransport(httpx.HTTPTransport(), hishel.SqliteStorage(database_path=path / "answers"))})


def with_hishel_for_tasks(path: Path) -> Any:
    return hishel.httpx.AsyncCacheClient(storage=hishel.AsyncSqliteStorage(database_path=path / "answers"))


def with_aiohttp_client_cache(path: Path) -> Any:
    cache = aiohttp_client_cache.SQLiteBackend(path / "answers", allowed_methods=("GET", "POST"), allowed_codes=(200, 202))
    return aiohttp_client_cache.CachedSession(cache=cache)


def with_requests_cache(path: Path) -> Any:
    return requests_cache.CachedSession(str(path / "answers"), allowable_methods=("GET", "POST"), allowable_codes=(200, 202))


@pytest.mark.parametrize(
    "kind", [with_hishel, with_hishel_of_a_mount, with_hishel_for_tasks, with_aiohttp_client_cache, with_requests_cache]
)
def test_a_cache_neither_answers_nor_keeps_what_it_sees(kind: Callable[[Path], Any], sandbox: Sandbox, tmp_path: Path) -> None:
    async def life() -> None:
        http = kind(tmp_path)
        async with hopline.AsyncAgentClient(**sandbox.account, http=http) as agent:
            first, second = [await agent.open_session(**BUY, credentials=True) for _ in range(2)]
            assert first.session_id != second.session_id
            await agent.terminate_session(session_id=first.session_id)
            assert (await agent.get_session(session_id=first.session_id)).status == "terminated"
            proxy = second.session.proxy
            assert proxy is not None and proxy.password is not None
            password = proxy.password.reveal()
        closing = http.aclose() if hasattr(http, "aclose") else http.close()
        if closing is not None:
            await closing
        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert password.encode() not in kept

    asyncio.run(life())
    assert sandbox.charges() == 2


def test_a_session_that_is_watched_sends(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry wraps `Session.send` in a function of its own."""
    source = "def watched(session, request, **settings):\n    return sends(session, request, **settings)\n"
    names: dict[str, Any] = {"__name__": "opentelemetry.instrumentation.requests", "sends": requests.Session.send}
    exec(source, names)
    monkeypatch.setattr(requests.Session, "send", names["watched"])
    with requests.Session() as session:
        assert buy(sandbox, session) .startswith("ses_")


@pytest.mark.parametrize("kind", [None, requests.Session, httpx.Client, urllib3.PoolManager])
def test_a_cassette_records_and_answers_where_there_is_no_service(kind: Any, tmp_path: Path) -> None:
    recorder = vcr.VCR(record_mode="once", match_on=["method", "path"], filter_headers=["x-api-key"])
    running, found = Sandbox(), []
    for _ in range(2):
        with recorder.use_cassette(str(tmp_path / "cassette.yaml")):
            found.append(buy(running, None if kind is None else kind()))
        running.close()
    assert isinstance(found[0], str) and found[0] == found[1], found
    assert running.account["api_key"] not in (tmp_path / "cassette.yaml").read_text()
