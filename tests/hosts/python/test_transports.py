"""No HTTP client undoes the policy: what each makes of a service that misbehaves on a real socket."""

import asyncio
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import hopline
import pytest
import requests
from canned import SOUND, until
from conftest import BUY
from sandbox import Sandbox
from transports import ASYNC, SYNC, async_http, sync_http

BOTH = [*(f"sync-{name}" for name in SYNC), *(f"async-{name}" for name in ASYNC)]
Call = tuple[str, dict[str, Any]]
BUYING: Call = ("create_session", BUY)
READING: Call = ("get_balance", {})
OWN = ["sync-stdlib", "sync-callable", "async-threads", "async-callable"]
"""The transport over the client that Python brings."""
ENDING: Call = ("terminate_session", {"session_id": "s-1"})
Fault = dict[str, Any]


def outcomes(which: str, account: dict[str, str], *calls: Call, **options: Any) -> list[Any]:
    """The result of each call, sent at most once each."""
    mode, _, name = which.partition("-")
    options = {**account, "attempts": 1, "timeout": 5.0, **options}
    if mode == "async":
        return asyncio.run(_outcomes(name, options, calls))
    found: list[Any] = []
    with sync_http(name) as http, hopline.AgentClient(**options, http=http) as agent:
        for operation, params in calls:
            try:
                found.append(getattr(agent, operation)(**params))
            except hopline.HoplineError as error:
                found.append(error)
    return found


async def _outcomes(name: str, options: dict[str, Any], calls: tuple[Call, ...]) -> list[Any]:
    found: list[Any] = []
    async with async_http(name) as http, hopline.AsyncAgentClient(**options, http=http) as agent:
        for operation, params in calls:
            try:
                found.append(await getattr(agent, operation)(**params))
            except hopline.HoplineError as error:
                found.append(error)
    return found


@pytest.mark.parametrize("which", BOTH)
def test_a_refused_connect_and_an_unknown_name_had_no_effect(which: str) -> None:
    with socket.socket() as unused:
        # Nobody listens at a port that is bound, nor is it given to anybody else.
        unused.bind(("127.0.0.1", 0))
        for url, kind in [(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", "connect"), ("http://unknown.invalid/v1", "dns")]:
            assert failure(which, url) == (kind, "never")
            # A lost packet to a server of names costs seconds.
            [error] = outcomes(which, {"base_url": url, "api_key": "key"}, BUYING, timeout=30.0, allow_http=True)
            assert isinstance(error, hopline.Unavailable) and error.effect == "none" and not error.record, repr(error)


def failure(which: str, url: str) -> tuple[str, str]:
    """The transport's own verdict on a request."""
    from hopline._http import transport_for_threads, transport_for_tasks

    mode, _, name = which.partition("-")
    request = hopline.Request(method="POST", url=url, headers={}, body=b"{}", timeout=30, max_body=1000)

    async def send() -> hopline.Response:
        async with async_http(name) as http:
            return await transport_for_tasks(http)(request)

    with pytest.raises(hopline.Failed) as caught:
        if mode == "async":
            asyncio.run(send())
        with sync_http(name) as http:
            transport_for_threads(http)(request)
    return caught.value.kind, caught.value.sent


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("kind", ["reset", "drop_before"])
def test_a_connection_that_breaks_leaves_a_purchase_in_doubt_and_it_is_sent_once(which: str, kind: str, sandbox: Sandbox) -> None:
    # Any further send would find a service that sells.
    sandbox.fault("create_session", kind=kind)
    [error] = outcomes(which, sandbox.account, BUYING)
    assert isinstance(error, hopline.InDoubt) and error.effect == "unknown" and error.record
    assert len(sandbox.requests()) == 1


@pytest.mark.parametrize("which", BOTH)
def test_a_connection_that_is_reset_before_the_request_is_read_leaves_it_in_doubt(which: str, sandbox: Sandbox) -> None:
    [error] = outcomes(which, {**sandbox.account, "base_url": sandbox.ready["reset_url"]}, BUYING)
    assert isinstance(error, hopline.InDoubt) and error.effect == "unknown"


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("call", [ENDING, READING, BUYING], ids=lambda call: call[0])
def test_what_is_dropped_on_a_kept_connection_is_not_sent_again(which: str, call: Call, sandbox: Sandbox) -> None:
    sandbox.fault("get_session", kind="answer", status=404)
    sandbox.fault(call[0], kind="drop_before")
    _, error = outcomes(which, sandbox.account, ("get_session", {"session_id": "s-1"}), call)
    assert isinstance(error, hopline.HoplineError) and error.status is None
    first, second = sandbox.requests()
    # Each write has a connection of its own; through httpx and aiohttp each read has one, too.
    is_own = "httpx" in which or "aiohttp" in which or call != READING
    assert (first["connection"] != second["connection"]) is is_own


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("fault", [{"kind": "delay", "ms": 60_000}, {"kind": "drip", "ms": 100, "head": True}, {"kind": "drip", "ms": 100}])
def test_a_timeout_is_kept_however_the_answer_drips(which: str, fault: Fault, sandbox: Sandbox) -> None:
    sandbox.fault("create_session", **fault)
    begun = time.monotonic()
    [error] = outcomes(which, sandbox.account, BUYING, timeout=2.0)
    assert isinstance(error, hopline.InDoubt) and error.effect == "unknown"
    assert 1.9 < time.monotonic() - begun < 30 and len(sandbox.requests()) == 1


@pytest.mark.parametrize("which", BOTH)
def test_what_a_client_itself_would_wait_for_is_ended_by_the_watchdog(which: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    make = hopline._engine._new_core

    def made(*given: Any) -> Any:
        core = make(*given)
        core.set_grace(-57_000)
        return core

    monkeypatch.setattr("hopline._engine._new_core", made)
    sandbox.fault("create_session", kind="delay", ms=60_000)
    begun = time.monotonic()
    [error] = outcomes(which, sandbox.account, BUYING, timeout=60.0)
    assert isinstance(error, hopline.InDoubt) and "in time" in str(error), error
    assert 2.9 < time.monotonic() - begun < 30 and len(sandbox.requests()) == 1


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize(("fault", "status"), [({"kind": "huge"}, 200), ({"kind": "huge", "silent": True}, 200), ({"kind": "truncate"}, 202)])
def test_a_body_that_goes_on_or_breaks_off_is_no_success(which: str, fault: Fault, status: int, sandbox: Sandbox) -> None:
    sandbox.fault(None, times=2, **fault)
    bought, read = outcomes(which, sandbox.account, BUYING, READING, max_body=100_000)
    assert isinstance(bought, hopline.InDoubt) and isinstance(read, hopline.HoplineError)
    assert bought.status == status and (read.kind, read.status) == ("protocol", 200)


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize(("status", "headers"), [(307, {"location": "/v1/account/info"}), (503, {"retry-after": "0"})])
def test_redirects_and_unavailable_services_are_the_cores_to_judge(which: str, status: int, headers: dict[str, str], sandbox: Sandbox) -> None:
    sandbox.fault(None, times=3, kind="answer", status=status, headers=headers, body="busy")
    errors = outcomes(which, sandbox.account, BUYING, READING, ENDING)
    assert all(isinstance(error, hopline.HoplineError) and error.status == status for error in errors)
    assert len(sandbox.requests()) == 3


@pytest.mark.parametrize("which", BOTH)
def test_the_request_is_sent_as_the_core_made_it(which: str, sandbox: Sandbox) -> None:
    outcomes(which, sandbox.account, BUYING, ("get_session", {"session_id": "s-1"}), ENDING)
    bought, read, ended = sandbox.requests()
    assert (bought["method"], bought["path"], bought["version"]) == ("POST", "/v1/sessions", "HTTP/1.1")
    assert '"product_no":"dynamic-world"' in bought["body"]
    names = [name for name, _ in bought["headers"]]
    assert "idempotency-key" in names and ["content-type", "application/json"] in bought["headers"]
    assert (read["method"], read["path"]) == ("GET", "/v1/sessions/s-1") and (ended["method"], ended["path"]) == ("DELETE", "/v1/sessions/s-1")
    for request in (bought, read, ended):
        headers, names = request["headers"], [name for name, _ in request["headers"]]
        assert headers.count(["x-api-key", sandbox.account["api_key"]]) == 1 and headers.count(["accept-encoding", "identity"]) == 1
        assert "transfer-encoding" not in names and "authorization" not in names


@pytest.mark.parametrize("kind", [dict, list, MappingProxyType])
def test_headers_are_a_mapping_or_pairs_in_any_case(kind: Any) -> None:
    headers = {"Date": "today", "Set-Cookie": b"a", "X-More": 7, "RETRY-AFTER": "9000", "content-type": "application/json"}

    def http(request: hopline.Request) -> hopline.Response:
        told: Any = list(headers.items()) if kind is list else kind(headers)
        return hopline.Response(status=503, headers=told, body=b'{"success":false,"error":{"code":"UPSTREAM_UNAVAILABLE","message":"no"}}')

    before = datetime.now(UTC)
    with hopline.AgentClient(**SOUND, http=http) as agent, pytest.raises(hopline.Unavailable) as caught:
        agent.get_balance()
    assert caught.value.retry_at is not None and caught.value.retry_at - before > timedelta(seconds=8000)


def test_a_session_whose_adapters_repeat_is_refused() -> None:
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=3))
        with pytest.raises(hopline.Misuse, match="repeats requests"):
            hopline.AgentClient(base_url="https://api.example/v1", http=session)


def test_a_session_that_authenticates_by_itself_sends_the_key_alone(sandbox: Sandbox) -> None:
    with requests.Session() as session:
        session.auth = ("user", "password")
        hopline.AgentClient(**sandbox.account, http=session).get_balance()
    assert "authorization" not in dict(sandbox.requests()[0]["headers"])


def send_alone(which: str, request: hopline.Request) -> object:
    """The answer of an HTTP client of others to a request in a thread, as a client for threads would have it."""
    from hopline._http._choose import _blocking

    try:
        with sync_http(which) as http:
            return _blocking(http)(request)
    except BaseException as error:
        return error


def balance_of(account: dict[str, str], timeout: float) -> hopline.Request:
    url = f"{account['base_url']}/billing/balance"
    return hopline.Request(method="GET", url=url, headers={"x-api-key": account["api_key"]}, body=None, timeout=timeout, max_body=10_000)


@pytest.mark.parametrize("which", SYNC)
def test_a_request_that_nobody_waits_for_any_more_is_not_sent(which: str, sandbox: Sandbox) -> None:
    request = balance_of(sandbox.account, 30)
    request.abort()
    error = send_alone(which, request)
    assert isinstance(error, hopline.Failed) and error.sent == "never" and sandbox.requests() == [], repr(error)


@pytest.mark.parametrize("which", SYNC)
def test_an_answer_that_drips_from_its_first_byte_holds_no_thread_once_nobody_waits_for_it(which: str, sandbox: Sandbox) -> None:
    sandbox.fault("get_balance", kind="drip", ms=500, head=True)
    request = balance_of(sandbox.account, 3600)
    found: list[object] = []
    sending = threading.Thread(target=lambda: found.append(send_alone(which, request)))
    sending.start()
    until(sandbox.requests)
    request.abort()
    sending.join(20)  # the answer would take longer
    assert not sending.is_alive() and isinstance(found[0], hopline.Failed) and found[0].sent == "maybe", found


def test_over_httpx_each_request_asks_for_the_end_of_its_connection(sandbox: Sandbox) -> None:
    """Another user of the client is given none that Hopline closes."""
    with sync_http("httpx") as http, hopline.AgentClient(**sandbox.account, http=http) as agent:
        agent.get_balance()
        assert http._transport._pool.connections == []
        assert http.get(f"{sandbox.account['base_url']}/billing/balance").status_code == 401
        assert len(http._transport._pool.connections) == 1
    assert [dict(request["headers"]).get("connection") for request in sandbox.requests()] == ["close", "keep-alive"]
