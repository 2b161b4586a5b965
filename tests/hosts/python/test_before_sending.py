"""A failure before anything is sent had no effect, and says why; an error of the caller's hook takes no answer away."""

import asyncio
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
import hopline
import httpx
import pytest
import requests
from canned import SESSION, SOUND
from conftest import BUY
from sandbox import Sandbox


def bought(http: Any, account: dict[str, str]) -> hopline.HoplineError:
    with hopline.AgentClient(**{**account, "attempts": 1}, http=http) as agent, pytest.raises(hopline.HoplineError) as caught:
        agent.create_session(**BUY)
    return caught.value


async def bought_in_task(http: Any, account: dict[str, str]) -> hopline.HoplineError:
    async with hopline.AsyncAgentClient(**{**account, "attempts": 1}, http=http) as agent:
        with pytest.raises(hopline.HoplineError) as caught:
            await agent.create_session(**BUY)
    return caught.value


def nothing_was_sent(error: hopline.HoplineError, why: str) -> bool:
    return error.effect == "none" and not error.record and why in str(error.__notes__)


def test_a_client_that_is_closed_sends_nothing(sandbox: Sandbox) -> None:
    async def closed(kind: Any) -> hopline.HoplineError:
        async with kind() as http:
            pass
        return await bought_in_task(http, sandbox.account)

    with httpx.Client() as http:
        pass
    assert nothing_was_sent(bought(http, sandbox.account), "the httpx.Client is closed")
    assert nothing_was_sent(asyncio.run(closed(httpx.AsyncClient)), "the httpx.AsyncClient is closed")
    assert nothing_was_sent(asyncio.run(closed(aiohttp.ClientSession)), "the aiohttp.ClientSession is closed")
    assert sandbox.requests() == []


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_client_of_an_event_loop_that_has_ended_sends_nothing_over_what_it_had(sandbox: Sandbox) -> None:
    async def life(http: Any) -> str | None:
        async with hopline.AsyncAgentClient(**sandbox.account, http=http, attempts=3) as agent:
            await agent.get_balance()
            return (await agent.create_session(**BUY)).session_id

    async def made(kind: Any) -> Any:
        http = kind()
        assert await life(http)
        return http

    http = asyncio.run(made(httpx.AsyncClient))
    for _ in range(2):
        assert asyncio.run(life(http))
    sold = sandbox.charges()
    session = asyncio.run(made(aiohttp.ClientSession))
    assert nothing_was_sent(asyncio.run(bought_in_task(session, sandbox.account)), "another event loop")
    assert sandbox.charges() == sold + 1


@pytest.mark.parametrize(
    ("proxy", "why"),
    [("nonsense://user:the-password@proxy.example:1", "could not connect: InvalidURL at adapters.py"), ("http://ĘdwardĄcki:the-password@127.0.0.1:9", "UnicodeEncodeError")],
)
def test_a_proxy_that_requests_can_not_use_had_no_effect(proxy: str, why: str, sandbox: Sandbox) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.proxies.update(http=proxy)
        error = bought(session, sandbox.account)
    assert nothing_was_sent(error, why) and "the-password" not in str(error.__notes__), error.__notes__


def test_a_hook_before_a_request_had_no_effect(sandbox: Sandbox) -> None:
    def sign(request: httpx.Request) -> None:
        raise KeyError(f"no signature for {request.headers['x-api-key']}")

    async def sign_too(request: httpx.Request) -> None:
        raise KeyError("no signature")

    async def life() -> hopline.HoplineError:
        async with httpx.AsyncClient(event_hooks={"request": [sign_too]}) as http:
            return await bought_in_task(http, sandbox.account)

    with httpx.Client(event_hooks={"request": [sign]}) as http:
        error = bought(http, sandbox.account)
    assert nothing_was_sent(error, "KeyError at test_before_sending.py:") and sandbox.account["api_key"] not in str(error.__notes__)
    assert nothing_was_sent(asyncio.run(life()), "no signature")
    assert sandbox.requests() == []


def refuse(response: httpx.Response) -> None:
    response.raise_for_status()


def read_and_refuse(response: httpx.Response) -> None:
    assert response.read().startswith(b"{") and response.json()
    response.raise_for_status()


async def refuse_too(response: httpx.Response) -> None:
    response.raise_for_status()


async def read_and_refuse_too(response: httpx.Response) -> None:
    assert (await response.aread()).startswith(b"{")
    response.raise_for_status()


@pytest.mark.parametrize("hook", [refuse, read_and_refuse, refuse_too, read_and_refuse_too])
def test_a_hook_that_raises_for_a_status_takes_no_answer_away(hook: Callable[..., Any], sandbox: Sandbox) -> None:
    async def life() -> hopline.HoplineError:
        async with httpx.AsyncClient(event_hooks={"response": [hook]}) as http:
            return await bought_in_task(http, sandbox.account)

    sandbox.control("balance", {"amount": "0"})
    if asyncio.iscoroutinefunction(hook):
        error = asyncio.run(life())
    else:
        with httpx.Client(event_hooks={"response": [hook]}) as http:
            error = bought(http, sandbox.account)
    assert isinstance(error, hopline.Refused) and (error.code, error.effect) == ("INSUFFICIENT_BALANCE", "none"), error


class Repeating(httpx.HTTPTransport):
    """Sends again by itself, where the first time may have bought."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return super().handle_request(request)
        except httpx.TransportError:
            raise httpx.ConnectError("the second time") from None


class Elsewhere(httpx.Client):
    """Sends by another client."""

    def send(self, request: httpx.Request, **settings: Any) -> httpx.Response:
        with httpx.Client() as other:
            return other.send(request)


class FailingOver(httpx.Client):
    """Makes a request anew for another client, and another host where that fails."""

    def send(self, request: httpx.Request, **settings: Any) -> httpx.Response:
        made = {"method": request.method, "headers": dict(request.headers), "content": request.read()}
        with httpx.Client() as other:
            try:
                return other.request(url=request.url, **made)  # type: ignore[arg-type]
            except httpx.TransportError:
                return other.request(url="http://127.0.0.1:9/", **made)  # type: ignore[arg-type]


class Building(requests.adapters.HTTPAdapter):
    """Fails once the answer is there."""

    def build_response(self, *given: Any) -> requests.Response:
        raise KeyError("what it was built for")


def test_what_was_sent_and_then_failed_is_in_doubt(sandbox: Sandbox) -> None:
    sandbox.fault("create_session", times=3, kind="drop_before")
    with Repeating() as transport, httpx.Client(transport=transport) as http:
        assert bought(http, sandbox.account).effect == "unknown"
    for kind in (Elsewhere, FailingOver):
        with kind() as http:
            assert bought(http, sandbox.account).effect == "unknown"
    assert len(sandbox.requests()) == 3
    with requests.Session() as session:
        session.mount("http://", Building())
        assert bought(session, sandbox.account).effect == "unknown" and len(sandbox.requests()) == 4


def test_a_middleware_of_aiohttp_that_fails_behind_an_answer_leaves_it_in_doubt(sandbox: Sandbox) -> None:
    async def report(request: aiohttp.ClientRequest, handler: Any) -> aiohttp.ClientResponse:
        await handler(request)
        async with aiohttp.ClientSession() as collector:
            return await collector.post("http://127.0.0.1:9/")

    async def life() -> hopline.HoplineError:
        async with aiohttp.ClientSession(middlewares=[report]) as http:
            return await bought_in_task(http, sandbox.account)

    assert asyncio.run(life()).effect == "unknown" and sandbox.charges() == 1


def test_a_guard_of_a_test_on_connections_is_heard(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("a test connects to nobody")

    with monkeypatch.context() as guarded:
        guarded.setattr(socket.socket, "connect", refused)
        assert nothing_was_sent(bought(None, sandbox.account), "a test connects to nobody")
    assert sandbox.requests() == []


def test_aiohttp_that_raises_for_a_status_takes_no_answer_away(sandbox: Sandbox) -> None:
    async def life() -> hopline.HoplineError:
        async with aiohttp.ClientSession(raise_for_status=True) as http:
            return await bought_in_task(http, sandbox.account)

    sandbox.control("balance", {"amount": "0"})
    assert asyncio.run(life()).effect == "none"


# The errors of a callable of one's own.


@pytest.mark.parametrize(
    "words",
    [
        "no route to https://user:the-password@api.example/v1",
        "bad header b'Bearer the-password'",
        "'the-api-\\u006bey' is no key",
        "the-api-key\nthe-api-",
        "Basic dXNlcjp0aGUtcGFzc3dvcmQ=",
    ],
)
def test_what_a_callable_raises_is_told_with_its_place_and_without_secrets(words: str) -> None:
    def http(request: hopline.Request) -> hopline.Response:
        raise LookupError(words)

    error = bought(http, {**SOUND, "api_key": "the-api-key"})  # type: ignore[arg-type]
    said = str(error.__notes__)
    assert error.effect == "unknown" and "the transport raised LookupError at test_before_sending.py:" in said and "[redacted]" in said
    assert not any(secret in said for secret in ("the-password", "the-api", "dXNlcjp0"))


def test_a_mistake_in_a_callable_says_where_it_is() -> None:
    def http(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=200, contents=SESSION)  # type: ignore[call-arg]

    said = str(bought(http, SOUND).__notes__)
    assert "TypeError at test_before_sending.py:" in said and "'contents'" in said


def test_the_password_of_a_login_is_told_to_nobody() -> None:
    def http(request: hopline.Request) -> hopline.Response:
        raise ValueError(f"could not send {request.body!r} of length 3")

    account: dict[str, Any] = {"base_url": "https://api.example/v1", "username": "the-user", "password": "pa55"}
    with hopline.ResellerClient(**account, http=http, attempts=1) as reseller, pytest.raises(hopline.HoplineError) as caught:
        list(reseller.walk_sub_users())
    assert "pa55" not in str(caught.value.__notes__) and "the-user" not in str(caught.value.__notes__)


@pytest.mark.parametrize("http", [httpx.Client, requests.Session, httpx.AsyncClient, requests.request, lambda method, url: None])
def test_what_can_not_be_called_with_a_request_is_refused(http: Any) -> None:
    with pytest.raises(hopline.Misuse, match="`http`"):
        hopline.AgentClient(**SOUND, http=http)
    with pytest.raises(hopline.Misuse, match="`http`"):
        hopline.AsyncAgentClient(**SOUND, http=http)


# Where a program is, and what it has imported.


def test_a_relative_folder_is_meant_from_where_the_store_was_made(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    store = hopline.FolderStore("records")
    monkeypatch.chdir(tmp_path / "b")
    with hopline.AgentClient(**SOUND, http=lambda _: hopline.Response(status=202, body=SESSION), store=store) as agent:
        agent.create_session(**BUY, intent="job")
    assert os.listdir(tmp_path / "b") == [] and os.listdir(tmp_path / "a") == ["records"]
    assert store.path == tmp_path / "a" / "records"


AGAIN = """
import sys
import hopline as first
bought = 0
def client(hopline):
    def answer(request):
        global bought
        bought += request.method == "POST"
        body = f'{{"success":true,"data":{{"session_id":"s-{bought}","session_type":"dynamic","status":"active"}}}}'
        return hopline.Response(status=202, body=body.encode())
    return hopline.AgentClient(base_url="https://api.example/v1", api_key="key", attempts=1, http=answer)
old, used = client(first), client(first)
used.create_session(session_type="dynamic", product_no="p")
for name in [name for name in sys.modules if name.split(".")[0] == "hopline"]:
    del sys.modules[name]
import hopline as second
assert second is not first
for hopline, agent in ((second, client(second)), (first, old), (first, used), (second, client(second))):
    sold = agent.create_session(session_type="dynamic", product_no="p")
    assert sold.session_id == f"s-{bought}" and isinstance(sold, hopline.Session), sold
    with agent.open_session(session_type="dynamic", product_no="p") as session:
        assert session.session_id == f"s-{bought}"
    agent.saved()
for begin in (lambda: client(first), old.to_async):
    try:
        begin()
    except first.Misuse as error:
        assert "imported a second time" in str(error), error
    else:
        raise AssertionError("it mixes two imports")
print("bought")
"""


def test_a_second_import_of_the_package_buys_as_the_first() -> None:
    done = subprocess.run([sys.executable, "-c", AGAIN], capture_output=True, text=True, timeout=60)
    assert done.stdout == "bought\n", done.stderr


@pytest.mark.parametrize(("mark", "value"), [("HOPLINE_API_KEY", " the-key\n"), ("HOPLINE_BASE_URL", "https://api.example/v1 \n")])
def test_space_around_what_the_environment_says_is_nothing(mark: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[hopline.Request] = []

    def http(request: hopline.Request) -> hopline.Response:
        seen.append(request)
        return hopline.Response(status=200, body=b'{"success":true,"data":{}}')

    monkeypatch.setenv("HOPLINE_API_KEY", "the-key")
    monkeypatch.setenv("HOPLINE_BASE_URL", "https://api.example/v1")
    monkeypatch.setenv(mark, value)
    with hopline.AgentClient(http=http) as agent:
        agent.get_balance()
    assert seen[0].headers["x-api-key"] == "the-key" and seen[0].url.startswith("https://api.example/v1/")


@pytest.mark.parametrize(("variable", "value"), [("HOPLINE_BASE_URL", "api.example/v1"), ("HOPLINE_API_KEY", "the\nkey"), ("HOPLINE_BASE_URL", "")])
def test_what_is_wrong_with_the_environment_is_said_of_its_variable(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPLINE_API_KEY", "the-key")
    monkeypatch.setenv("HOPLINE_BASE_URL", "https://api.example/v1")
    monkeypatch.setenv(variable, value)
    with pytest.raises(hopline.HoplineError, match=variable) as caught:
        hopline.AgentClient()
    assert "the\nkey" not in str(caught.value)
