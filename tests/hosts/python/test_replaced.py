"""Parts of Python that a test, a program or a machine has replaced, stopped or slowed down: nothing is bought past them, and nothing hangs."""

import http.client
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import freezegun
import hopline
import pytest
from canned import SOUND
from conftest import BUY
from sandbox import Sandbox


def refuse(*given: Any, **settings: Any) -> Any:
    raise RuntimeError("no network in tests")


class Guarded(socket.socket):
    def __init__(self, *given: Any, **settings: Any) -> None:
        refuse()


CONNECTING = [
    (socket, "create_connection", refuse),
    (socket, "getaddrinfo", refuse),
    (socket, "socket", Guarded),
    (socket.socket, "connect", refuse),
    (http.client.HTTPConnection, "connect", refuse),
]


@pytest.mark.parametrize(("place", "name", "guard"), CONNECTING, ids=[f"{getattr(place, '__name__', place)}.{name}" for place, name, _ in CONNECTING])
def test_a_test_that_allows_no_connection_is_not_passed_by(place: Any, name: str, guard: Any, sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account, attempts=1) as agent:
        with mock.patch.object(place, name, guard), pytest.raises(hopline.Unavailable) as caught:
            agent.create_session(**BUY)
        assert caught.value.effect == "none" and "no network in tests" in str(caught.value.__notes__)
        assert sandbox.charges() == 0
        agent.create_session(**BUY)
        assert sandbox.charges() == 1


def test_a_program_that_connects_in_a_way_of_its_own_does_so_here_too(sandbox: Sandbox) -> None:
    """As a program behind a tunnel."""
    connect, places = socket.create_connection, []

    def tunnel(address: tuple[str, int], *given: Any, **settings: Any) -> socket.socket:
        places.append(address[0])
        return connect(("127.0.0.1", address[1]), *given, **settings)

    elsewhere = sandbox.account["base_url"].replace("127.0.0.1", "hopline.invalid")
    with mock.patch.object(socket, "create_connection", tunnel):
        with hopline.AgentClient(base_url=elsewhere, api_key=sandbox.account["api_key"], allow_http=True) as agent:
            agent.create_session(**BUY)
            agent.get_balance()
    assert set(places) == {"hopline.invalid"} and sandbox.charges() == 1


def test_a_stopped_clock_stops_no_wait(sandbox: Sandbox) -> None:
    """freezegun also stops the clock that waits are measured by."""
    with freezegun.freeze_time("2030-01-01"), hopline.AgentClient(**sandbox.account) as agent:
        sandbox.fault("get_balance", kind="html", status=503)
        assert agent.get_balance().raw
    assert len(sandbox.requests()) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse what does not fit into a queue")
def test_a_stopped_clock_ends_a_connection_that_does_not_come_about() -> None:
    with ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            guest = sockets.enter_context(socket.socket())
            guest.setblocking(False)
            guest.connect_ex(full.getsockname())
        sockets.enter_context(freezegun.freeze_time("2030-01-01"))
        place = f"http://127.0.0.1:{full.getsockname()[1]}"
        with hopline.AgentClient(**SOUND | {"base_url": place, "timeout": 3}) as agent, pytest.raises(hopline.Unavailable) as caught:
            agent.create_session(**BUY)
    assert caught.value.effect == "none"


def test_a_name_that_nobody_resolves_takes_no_longer_than_the_request_may(sandbox: Sandbox) -> None:
    stuck, went_on = threading.Event(), threading.Event()
    find = socket.getaddrinfo

    def slow(host: Any, *given: Any, **settings: Any) -> Any:
        if host == "slow.example":
            stuck.wait(60)
            went_on.set()
        return find(host, *given, **settings)

    with mock.patch.object(socket, "getaddrinfo", slow):
        with hopline.AgentClient(**SOUND | {"base_url": "https://slow.example/v1", "timeout": 3}) as agent:
            begun = time.monotonic()
            with pytest.raises(hopline.Unavailable) as caught:
                agent.create_session(**BUY)
            assert time.monotonic() - begun < 20 and caught.value.effect == "none" and not went_on.is_set()
        stuck.set()
        assert went_on.wait(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_child_that_is_forked_while_a_thread_begins_drops_its_client() -> None:
    from hopline._threads import Threads

    threads = Threads(1)
    with threads._lock:
        child = os.fork()
        if child == 0:
            del threads
            os._exit(0)
    end = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("it waits for a lock that nobody gives back")
        time.sleep(0.01)
    assert ended == (child, 0)


class Page:
    status_code, text = 200, "fine"


async def late(page: Any) -> bool:
    return False


class Late:
    async def __call__(self, page: Any) -> bool:
        return False


RULES: list[Any] = [late, Late(), "robot", True]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_for_blocks_that_is_awaited_or_is_none_is_refused_before_anything_is_bought(rule: Any, sandbox: Sandbox) -> None:
    shop = BUY | {"protocol": "http", "daily_cap_usd": "50", "size": 1}
    with hopline.AgentClient(**sandbox.account) as agent:
        with pytest.raises(TypeError, match="`blocked` must be a function of a response"):
            agent.open_pool("rule", blocked=rule, **shop)
        assert sandbox.requests() == []


def test_a_rule_for_blocks_that_returns_an_awaitable_makes_no_response_a_block(sandbox: Sandbox) -> None:
    shop = BUY | {"protocol": "http", "daily_cap_usd": "50", "size": 1}
    rule: Callable[[Any], Any] = lambda page: late(page)  # noqa: E731
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("rule", blocked=rule, **shop) as pool, pool.acquire() as lease:
        with pytest.raises(hopline.Misuse, match="must say at once"):
            lease.observe(Page())
        assert lease.observe(200) == "keep"
