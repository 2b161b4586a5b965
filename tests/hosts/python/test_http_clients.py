"""The HTTP clients that people bring, as they bring them: test transports, old versions, repeats, caches; and the built-in one."""

import asyncio
import contextlib
import contextvars
import select
import socket
import ssl
from typing import Any

import aiohttp
import hopline
import httpx
import pytest
import requests
import urllib3
from conftest import BUY
from hopline._http import _requests, _urllib3
from hopline._http._base import break_off
from sandbox import Sandbox

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}
BOUGHT = {"success": True, "data": {"session_id": "s-1", "status": "active"}}


def handle(request: httpx.Request) -> httpx.Response:
    return httpx.Response(202, json=BOUGHT)


def read_early(response: httpx.Response) -> None:
    response.read()


async def read_early_too(response: httpx.Response) -> None:
    await response.aread()


@pytest.mark.parametrize("hooks", [[], [read_early]])
def test_a_purchase_goes_through_httpxs_own_test_transport(hooks: list[Any]) -> None:
    http = httpx.Client(transport=httpx.MockTransport(handle), event_hooks={"response": hooks})
    with http, hopline.AgentClient(**SOUND, http=http, attempts=1) as agent:
        assert agent.create_session(**BUY).session_id == "s-1"


@pytest.mark.parametrize("hooks", [[], [read_early_too]])
def test_the_same_in_a_task(hooks: list[Any]) -> None:
    async def life() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(handle), event_hooks={"response": hooks})
        async with http, hopline.AsyncAgentClient(**SOUND, http=http, attempts=1) as agent:
            assert (await agent.create_session(**BUY)).session_id == "s-1"

    asyncio.run(life())


class Repeating(httpx.HTTPTransport):
    """Sends again by itself, as retrying transports do."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        super().handle_request(request).read()
        return super().handle_request(request)


class RepeatingToo(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await (await super().handle_async_request(request)).aread()
        return await super().handle_async_request(request)


def test_an_httpx_transport_that_repeats_by_itself_is_stopped_at_its_second_send(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with httpx.AsyncClient(transport=RepeatingToo()) as http:
            async with hopline.AsyncAgentClient(**sandbox.account, http=http, attempts=1) as agent:
                await agent.create_session(**BUY)

    with httpx.Client(transport=Repeating()) as http, hopline.AgentClient(**sandbox.account, http=http, attempts=1) as agent:
        with pytest.raises(hopline.InDoubt) as caught:
            agent.create_session(**BUY)
    assert len(sandbox.requests()) == 1 and "tried to repeat" in str(caught.value.__notes__)
    with pytest.raises(hopline.InDoubt):
        asyncio.run(life())
    assert len(sandbox.requests()) == 2


def test_an_aiohttp_that_is_too_old_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life() -> None:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(hopline.Misuse, match=r"aiohttp 3\.11\.18 .* install aiohttp 3\.12 or later"):
                hopline.AsyncAgentClient(**SOUND, http=session)

    monkeypatch.setattr(aiohttp, "__version__", "3.11.18")
    asyncio.run(life())


def test_what_requests_refuses_to_send_had_no_effect_and_says_why() -> None:
    for spoil, said in (
        (lambda session: session.mount("https://", requests.adapters.HTTPAdapter(max_retries=3)), "repeats requests to `https://`"),
        (lambda session: session.adapters.clear(), "could not prepare the request: InvalidSchema"),
        (lambda session: session.proxies.update(https="http://"), "could not connect: InvalidProxyURL"),
    ):
        with requests.Session() as session, hopline.AgentClient(**SOUND, http=session, attempts=1) as agent:
            spoil(session)
            with pytest.raises(hopline.Unavailable) as caught:
                agent.create_session(**BUY)
            assert caught.value.effect == "none" and said in str(caught.value.__notes__)


class Twice(requests.adapters.HTTPAdapter):
    """Sends again by itself, as adapters that retry do."""

    def send(self, *given: Any, **settings: Any) -> requests.Response:
        super().send(*given, **settings)
        return super().send(*given, **settings)


class TwicePool(urllib3.HTTPConnectionPool):
    def urlopen(self, *given: Any, **settings: Any) -> Any:
        super().urlopen(*given, **settings)
        return super().urlopen(*given, **settings)


class TwiceManager(urllib3.PoolManager):
    def urlopen(self, *given: Any, **settings: Any) -> Any:
        super().urlopen(*given, **settings)
        return super().urlopen(*given, **settings)


class Tuned(requests.adapters.HTTPAdapter):
    """Chooses how it connects, and leaves sending to requests."""

    def init_poolmanager(self, *given: Any, **settings: Any) -> None:
        super().init_poolmanager(*given, **settings, source_address=("127.0.0.1", 0))


def test_an_adapter_or_a_pool_with_a_way_of_sending_of_its_own_is_refused_and_sends_nothing(sandbox: Sandbox) -> None:
    pool, adapter = urllib3.PoolManager(), requests.adapters.HTTPAdapter()
    pool.pool_classes_by_scheme = adapter.poolmanager.pool_classes_by_scheme = {"http": TwicePool}
    options: dict[str, Any] = {**sandbox.account, "attempts": 1}
    for http in (pool, TwiceManager()):
        with pytest.raises(hopline.Misuse, match="`urlopen` of its own, .* a callable that sends each request once"):
            hopline.AgentClient(**options, http=http)
    for wrong in (Twice(), adapter):
        with requests.Session() as session:
            agent = hopline.AgentClient(**options, http=session)
            session.mount("http://", wrong)
            with agent, pytest.raises(hopline.Unavailable) as caught:
                agent.create_session(**BUY)
            assert caught.value.effect == "none" and "`send` or a pool of its own" in str(caught.value.__notes__)
            with pytest.raises(hopline.Misuse, match="`send` or a pool of its own"):
                hopline.AgentClient(**options, http=session)
    assert sandbox.requests() == []
    with requests.Session() as session:
        session.mount("http://", Tuned())
        session.mount("file://", Twice())
        with hopline.AgentClient(**options, http=session) as agent:
            assert agent.create_session(**BUY).session_id
    assert len(sandbox.requests()) == 1


def test_reads_share_a_connection_and_each_write_has_one_of_its_own(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        for _ in range(5):
            agent.get_balance()
        assert sandbox.connections() == 1
        for _ in range(3):
            agent.create_session(**BUY)
            agent.get_balance()
        assert sandbox.connections() == 4
    assert not agent._send._idle  # type: ignore[attr-defined]
    assert all(dict(request["headers"])["user-agent"].startswith("hopline-python/") for request in sandbox.requests())


def test_a_kept_connection_that_the_service_has_closed_is_not_used(sandbox: Sandbox) -> None:
    sandbox.fault("get_balance", times=3, kind="hang_up")
    with hopline.AgentClient(**sandbox.account, attempts=1) as agent:
        for _ in range(3):
            assert agent.get_balance().raw["balance"] == 100_000
            [(_, _, kept)] = agent._send._idle  # type: ignore[attr-defined]
            assert select.select([kept.sock], [], [], 10)[0], "the service has not closed it"


class Older:
    """A connection, its pool and its manager in one, with what urllib3 1.26 has of them: `is_closed` is newer. requests takes 1.26, too."""

    sock: Any = None

    def connection_from_host(self, host: str) -> "Older":
        return self

    def connect(self) -> None:
        self.sock = "connected"

    def _validate_conn(self, connection: Any) -> None: ...

    def _put_conn(self, connection: Any) -> None: ...


def test_a_connection_of_urllib3_1_26_is_connected() -> None:
    request = hopline.Request(method="GET", url="http://api.example/", headers={}, body=None, timeout=1, max_body=1)
    older = Older()
    _urllib3.watched(older, request).connection_from_host("api.example")._validate_conn(older)
    assert older.sock == "connected" and request._aborts


@pytest.mark.parametrize("kind", [requests.Session, urllib3.PoolManager])
def test_a_kept_connection_of_urllib3_is_not_broken_off_once_it_is_given_back(kind: Any, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The read of a body gives it back with the last byte, and then it may be another request's."""
    asked: list[hopline.Request] = []
    given_back: list[bool] = []
    watched, put = _urllib3.watched, urllib3.HTTPConnectionPool._put_conn

    def hear(manager: Any, request: hopline.Request) -> Any:
        asked.append(request)
        return watched(manager, request)

    def hear_too(pool: Any, connection: Any) -> None:
        given_back.append(not asked[-1]._aborts)
        put(pool, connection)

    for module in (_urllib3, _requests):
        monkeypatch.setattr(module, "watched", hear)
    monkeypatch.setattr(urllib3.HTTPConnectionPool, "_put_conn", hear_too)
    with kind() as http, hopline.AgentClient(**sandbox.account, http=http, attempts=1) as agent:
        agent.get_balance()
    assert given_back and all(given_back)


@pytest.mark.parametrize("error", [ssl.SSLError("no handshake"), ValueError("urllib3 1.26 says so of a name that is not the certificate's"), OSError()])
def test_a_connection_of_urllib3_that_does_not_come_about_had_no_effect(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(connection: Any) -> None:
        raise error

    monkeypatch.setattr(urllib3.connection.HTTPConnection, "connect", connect)
    for kind in (requests.Session, urllib3.PoolManager):
        with kind() as http, hopline.AgentClient(base_url="http://127.0.0.1:9/v1", api_key="key", http=http, attempts=1) as agent:
            with pytest.raises(hopline.Unavailable) as caught:
                agent.create_session(**BUY)
            assert caught.value.effect == "none"


class Shared(requests.adapters.HTTPAdapter):
    """Has more than connections, which its end clears."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = ["a certificate"]

    def close(self) -> None:
        self.kept.clear()
        super().close()


def test_a_write_through_an_adapter_does_not_end_the_adapter(sandbox: Sandbox) -> None:
    adapter = Shared()
    with requests.Session() as session:
        session.mount("http://", adapter)
        with hopline.AgentClient(**sandbox.account, http=session) as agent:
            assert agent.create_session(**BUY).session_id
        assert adapter.kept == ["a certificate"]


def test_a_callable_sees_the_context_of_who_called_in_threads_too() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    seen: list[str] = []

    def http(request: hopline.Request) -> hopline.Response:
        seen.append(name.get())
        return hopline.Response(status=200, body=b'{"success":true,"data":{}}')

    async def life() -> None:
        name.set("task")
        async with hopline.AsyncAgentClient(**SOUND, http=http) as agent:
            await agent.get_balance()

    asyncio.run(life())
    name.set("thread")
    hopline.AgentClient(**SOUND, http=http).get_balance()
    assert seen == ["task", "thread"]


def test_a_tls_connection_is_never_broken_off_to_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that another thread sends in the moment in which a connection is broken off is encrypted, or not sent."""
    ours, theirs = socket.socketpair()
    ours.settimeout(0.2)
    secured = ssl.create_default_context().wrap_socket(ours, server_hostname="api.example", do_handshake_on_connect=False)

    def shutdown(connection: socket.socket, how: int) -> None:
        with contextlib.suppress(OSError):
            connection.send(b"x-api-key: secret")

    monkeypatch.setattr(socket.socket, "shutdown", shutdown, raising=False)
    with secured, theirs:
        break_off(secured)
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert b"secret" not in theirs.recv(65536)


def blocking(kind: str) -> Any:
    """An HTTP client with one connection per host, whose next request waits for it."""
    if kind == "urllib3":
        return urllib3.PoolManager(maxsize=1, block=True)
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=1, pool_block=True))
    return session


@pytest.mark.parametrize("kind", ["urllib3", "requests"])
def test_a_read_that_gets_no_connection_of_a_pool_that_blocks_says_so_and_leaves_no_thread(kind: str, sandbox: Sandbox) -> None:
    http = blocking(kind)
    url, options = sandbox.account["base_url"] + "/nothing", {"stream": True} if kind == "requests" else {"preload_content": False}
    with http, hopline.AgentClient(**sandbox.account, http=http, attempts=1, timeout=0.3) as agent:
        held = http.request("GET", url, **options)
        with pytest.raises(hopline.Unavailable) as caught:
            agent.get_balance()
        assert any("no connection of the urllib3 pool was free" in note for note in caught.value.__notes__)
        # A write has a connection of its own.
        assert agent.create_session(**BUY).session_id
        held.close()
        if kind == "urllib3":
            held.release_conn()
        assert agent.get_balance().raw["balance"] is not None


def test_a_purchase_that_waits_for_a_connection_of_aiohttp_was_not_sent(sandbox: Sandbox) -> None:
    async def life(silent: socket.socket) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
            held = asyncio.create_task(http.request("GET", f"http://127.0.0.1:{silent.getsockname()[1]}"))
            connection, _ = await asyncio.to_thread(silent.accept)
            async with hopline.AsyncAgentClient(**sandbox.account, http=http, attempts=1, timeout=1) as agent:
                with pytest.raises(hopline.Unavailable) as caught:
                    await agent.create_session(**BUY)
                assert caught.value.effect == "none"
            held.cancel()
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(life(silent))
    assert not sandbox.requests()
