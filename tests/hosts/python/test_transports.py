"""No HTTP client undoes the policy: what each makes of a service that misbehaves on a real socket."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hopline
import pytest
import requests
import wire
from conftest import BUY
from transports import ASYNC, SYNC, async_http, sync_http
from wire import Wire

BOTH = [*(f"sync-{name}" for name in SYNC), *(f"async-{name}" for name in ASYNC)]
Call = tuple[str, dict[str, Any]]
BUYING: Call = ("create_session", BUY)
READING: Call = ("get_session", {"session_id": "s-1"})
ENDING: Call = ("terminate_session", {"session_id": "s-1"})


def outcomes(which: str, url: str, *calls: Call, **options: Any) -> list[Any]:
    """What came of each call, sent at most once each."""
    mode, _, name = which.partition("-")
    account = {"base_url": url, "api_key": "canary-key", "attempts": 1, "timeout": 5.0, "allow_http": True, **options}
    if mode == "async":
        return asyncio.run(_outcomes(name, account, calls))
    found: list[Any] = []
    with sync_http(name) as http, hopline.AgentClient(**account, http=http) as agent:
        for operation, params in calls:
            try:
                found.append(getattr(agent, operation)(**params))
            except hopline.HoplineError as error:
                found.append(error)
    return found


async def _outcomes(name: str, account: dict[str, Any], calls: tuple[Call, ...]) -> list[Any]:
    found: list[Any] = []
    async with async_http(name) as http, hopline.AsyncAgentClient(**account, http=http) as agent:
        for operation, params in calls:
            try:
                found.append(await getattr(agent, operation)(**params))
            except hopline.HoplineError as error:
                found.append(error)
    return found


@contextmanager
def misbehaving(behaviour: wire.Behaviour, **options: Any) -> Iterator[Wire]:
    server = Wire(behaviour, **options)
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize("which", BOTH)
def test_a_refused_connect_and_an_unknown_name_had_no_effect(which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for url, kind in [(f"http://127.0.0.1:{port}/v1", "connect"), ("http://unknown.invalid/v1", "dns")]:
        assert failure(which, url) == (kind, "never")
        # A lost packet to a server of names costs seconds.
        [error] = outcomes(which, url, BUYING, timeout=30.0)
        assert isinstance(error, hopline.Unavailable) and error.effect == "none" and not error.record, repr(error)


def failure(which: str, url: str) -> tuple[str, str]:
    """What the transport alone says of a request."""
    from hopline._http import choose, choose_async

    mode, _, name = which.partition("-")
    request = hopline.Request(method="POST", url=url, headers={}, body=b"{}", timeout=30, max_body=1000)

    async def send() -> hopline.Response:
        async with async_http(name) as http:
            return await choose_async(http)(request)

    with pytest.raises(hopline.Failed) as caught:
        if mode == "async":
            asyncio.run(send())
        with sync_http(name) as http:
            choose(http)(request)
    return caught.value.kind, caught.value.sent


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("behaviour", [wire.reset, wire.close])
def test_a_connection_that_breaks_leaves_a_purchase_in_doubt_and_it_is_sent_once(which: str, behaviour: wire.Behaviour) -> None:
    with misbehaving(behaviour) as server:
        [error] = outcomes(which, server.url, BUYING)
        assert isinstance(error, hopline.InDoubt) and error.effect == "unknown" and error.record
        assert len(server.requests) == 1


@pytest.mark.parametrize("which", BOTH)
def test_a_connection_that_is_reset_before_the_request_is_read_leaves_it_in_doubt(which: str) -> None:
    with misbehaving(wire.reset_unread, read_first=False) as server:
        [error] = outcomes(which, server.url, BUYING)
        assert isinstance(error, hopline.InDoubt) and error.effect == "unknown"


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("call", [ENDING, READING, BUYING], ids=lambda call: call[0])
def test_what_is_dropped_on_a_kept_connection_is_not_sent_again(which: str, call: Call) -> None:
    with misbehaving(wire.once_then_close) as server:
        first, second = outcomes(which, server.url, READING, call)
        assert first.session_id == "s-1" and isinstance(second, hopline.HoplineError)
        assert len(server.requests) == 2


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("behaviour", [wire.silence, wire.drip_head, wire.drip_body])
def test_a_timeout_is_kept_however_the_answer_drips(which: str, behaviour: wire.Behaviour) -> None:
    with misbehaving(behaviour) as server:
        begun = time.monotonic()
        [error] = outcomes(which, server.url, BUYING, timeout=0.7)
        assert isinstance(error, hopline.InDoubt) and error.effect == "unknown"
        assert 0.6 < time.monotonic() - begun < 10 and len(server.requests) == 1


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("behaviour", [wire.endless, wire.short])
def test_a_body_that_goes_on_or_breaks_off_is_no_success(which: str, behaviour: wire.Behaviour) -> None:
    with misbehaving(behaviour) as server:
        bought, read = outcomes(which, server.url, BUYING, READING, max_body=100_000)
        assert isinstance(bought, hopline.InDoubt) and isinstance(read, hopline.HoplineError)
        assert bought.status == 200 and read.kind == "protocol"


@pytest.mark.parametrize("which", BOTH)
@pytest.mark.parametrize("behaviour", [wire.redirect, wire.unavailable])
def test_redirects_and_unavailable_services_are_the_cores_to_judge(which: str, behaviour: wire.Behaviour) -> None:
    with misbehaving(behaviour) as server:
        errors = outcomes(which, server.url, BUYING, READING, ENDING)
        assert all(isinstance(error, hopline.HoplineError) and error.status in (307, 503) for error in errors)
        assert len(server.requests) == 3


@pytest.mark.parametrize("which", BOTH)
def test_the_request_is_sent_as_the_core_made_it(which: str) -> None:
    with misbehaving(lambda connection, n: connection.sendall(wire.answer(wire.SESSION))) as server:
        outcomes(which, server.url, BUYING, READING, ENDING)
        bought, read, ended = (request.lower() for request in server.requests)
    assert bought.startswith(b"post /v1/sessions http/1.1") and b'"product_no":"dynamic-world"' in bought
    assert b"idempotency-key: " in bought and b"content-type: application/json" in bought
    assert read.startswith(b"get /v1/sessions/s-1 ") and ended.startswith(b"delete /v1/sessions/s-1 ")
    for request in (bought, read, ended):
        assert request.count(b"x-api-key: canary-key") == 1 and request.count(b"accept-encoding: identity") == 1
        assert b"transfer-encoding" not in request and b"authorization" not in request


def test_only_the_headers_that_the_core_names_are_passed() -> None:
    from hopline._http._base import named

    came = [("Date", "today"), ("Set-Cookie", "a"), ("RETRY-AFTER", "1"), ("content-type", "x"), ("x-more", "y")]
    assert named(came) == [("date", "today"), ("retry-after", "1"), ("content-type", "x")]


def test_a_session_whose_adapters_repeat_is_refused() -> None:
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=3))
        with pytest.raises(hopline.Misuse, match="repeats requests"):
            hopline.AgentClient(base_url="https://api.example/v1", http=session)


def test_a_session_that_authenticates_by_itself_sends_the_key_alone() -> None:
    with misbehaving(lambda connection, n: connection.sendall(wire.answer(wire.SESSION))) as server, requests.Session() as session:
        session.auth = ("user", "password")
        hopline.AgentClient(base_url=server.url, api_key="k", http=session).get_session(session_id="s-1")
        assert b"authorization" not in server.requests[0].lower()
