"""A real nginx between the client and the service: what each HTTP client makes of its failures, held against the service's own books."""

import asyncio
import inspect
import os
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
from transports import async_http, sync_http

CLIENTS = ["sync-stdlib", "sync-requests", "sync-httpx", "sync-urllib3", "async-httpx", "async-aiohttp"]

LATE_MS = 20_000
"""Longer than the gateway waits."""

NGINX = os.environ.get("HOPLINE_NGINX") or shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(not NGINX and os.environ.get("CI") != "true", reason="nginx is not installed; HOPLINE_NGINX may name the program")

Fault = dict[str, Any] | None
Ending = int | None
BOUGHT = 0
"""In the place of the HTTP status that a purchase is left in doubt with."""

CASES: list[tuple[str, Fault, Ending, int]] = [
    # A road of the gateway, what happens behind it, what a purchase ends with that is sent once, and the charges that the service has then.
    ("plain", None, BOUGHT, 1),
    ("plain", {"kind": "drop_before"}, 502, 0),
    ("plain", {"kind": "drop_after"}, 502, 1),
    ("plain", {"kind": "truncate"}, 202, 1),
    ("gone", None, 502, 0),
    ("late", {"kind": "delay", "ms": LATE_MS}, 504, 1),
    ("late", {"kind": "in_progress", "ms": LATE_MS}, 504, 0),
    # The gateway itself sends it again: the first one is answered in the place of the second, or is still under way.
    ("twice", {"kind": "drop_after"}, BOUGHT, 1),
    ("twice", {"kind": "in_progress", "ms": LATE_MS}, 409, 0),
    ("stream", None, BOUGHT, 1),
    ("stream", {"kind": "truncate"}, 202, 1),
    ("gzip", None, BOUGHT, 1),
    ("gzip", {"kind": "truncate"}, 202, 1),
    ("dying", None, BOUGHT, 1),  # a connection dies when it is used again, and a write has one of its own
]


Story = Callable[[str, Sandbox], Coroutine[Any, Any, None]]


def with_each_client(story: Story) -> None:
    """Tells it with each HTTP client and a gateway of its own, all at a time: most of it is waiting."""

    def tell(which: str) -> None:
        gateway = Sandbox("--gateway", "--provisioning-ms", "0")
        try:
            asyncio.run(story(which, gateway))
        except BaseException as error:
            error.add_note(f"with {which}")
            raise
        finally:
            gateway.close()

    with ThreadPoolExecutor(len(CLIENTS)) as threads:
        for _ in threads.map(tell, CLIENTS):
            pass


@asynccontextmanager
async def through(gateway: Sandbox, road: str, which: str) -> AsyncIterator[Any]:
    """A client on a road of the gateway."""
    mode, _, name = which.partition("-")
    account = {**gateway.account, "base_url": f"{gateway.ready['gateway_url']}/{road}/v1"}
    if mode == "async":
        async with async_http(name) as http, hopline.AsyncAgentClient(**account, http=http) as agent:
            yield agent
    else:
        with sync_http(name) as http, hopline.AgentClient(**account, http=http) as agent:
            yield agent


async def came(call: Callable[..., Any], **params: Any) -> Any:
    """The outcome of a call, of either client: its result, or its error."""
    try:
        result = call(**params)
        return await result if inspect.isawaitable(result) else result
    except hopline.HoplineError as error:
        return error


async def is_in_doubt(agent: Any, error: Any, status: int | None) -> bool:
    """Returns true if it says truly what is open, by a record that is kept."""
    said = isinstance(error, hopline.InDoubt) and (error.effect, error.status) == ("unknown", status)
    return said and [saved.record for saved in await came(agent.saved)] == [error.record]


def test_a_purchase_that_a_gateway_breaks_is_in_doubt_and_is_made_once_by_starting_its_intent_again() -> None:
    async def story(which: str, gateway: Sandbox) -> None:
        for road, fault, ending, charges in CASES:
            what, before = f"{road} {fault}", gateway.charges()
            async with through(gateway, road, which) as agent:
                if road == "dying":
                    await came(agent.get_balance)
                if fault:
                    gateway.fault("create_session", **fault)
                bought = await came(agent.create_session, **BUY, intent="job", attempts=1)
                if ending == BOUGHT:
                    assert isinstance(bought, hopline.Session), f"{what}: {bought!r}"
                else:
                    assert await is_in_doubt(agent, bought, ending), f"{what}: {bought!r}"
                assert gateway.charges() - before == charges, what
                gateway.control("clock", {"advance_ms": LATE_MS})
                again = await came(agent.create_session, **BUY, intent="job")
                assert isinstance(again, hopline.Session), f"{what}: {again!r}"
            assert gateway.charges() - before == 1, what
            assert again.session_id == gateway.state()["charges"][-1]["session_id"], what

    with_each_client(story)


def test_a_purchase_that_never_gets_past_a_gateway_stays_in_doubt() -> None:
    async def story(which: str, gateway: Sandbox) -> None:
        for road, status, charges in (("small", 413, 0), ("narrow", 502, 1)):
            async with through(gateway, road, which) as agent:
                for _ in range(2):
                    error = await came(agent.create_session, **BUY, intent="job", attempts=2)
                    assert await is_in_doubt(agent, error, status), f"{road}: {error!r}"
                    assert gateway.charges() == charges, road

    with_each_client(story)


def test_a_session_lives_on_over_connections_that_the_gateway_closes() -> None:
    async def story(which: str, gateway: Sandbox) -> None:
        async with through(gateway, "kept", which) as agent:
            opened = await came(agent.open_session, **BUY, intent="job")
            for n in range(6):
                # Every third request is the last one of its connection, and a rest is longer than the gateway keeps one.
                if n == 3:
                    await asyncio.sleep(2)
                assert (await came(agent.get_session, session_id=opened.session_id)).session_id == opened.session_id
            await came(agent.terminate_session, session_id=opened.session_id)
        assert gateway.charges() == 1 and [session["status"] for session in gateway.state()["sessions"]] == ["terminated"]

    with_each_client(story)
