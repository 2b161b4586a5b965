"""A thousand purchases at once over each HTTP client that the README names: none is in doubt, and each is charged once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
from transports import ASYNC, SYNC, async_http, sync_http

MANY = 1000


@pytest.mark.parametrize("name", ASYNC)
def test_a_thousand_tasks_buy_at_once(name: str, sandbox: Sandbox) -> None:
    async def life() -> list[Any]:
        async with async_http(name) as http, hopline.AsyncAgentClient(**sandbox.account, http=http, timeout=60.0) as agent:
            return await asyncio.gather(*(agent.create_session(**BUY) for _ in range(MANY)))

    sold = asyncio.run(life())
    assert len({one.session_id for one in sold}) == MANY == sandbox.charges()


@pytest.mark.parametrize("name", SYNC)
def test_a_thousand_purchases_of_a_hundred_threads(name: str, sandbox: Sandbox) -> None:
    with sync_http(name) as http, hopline.AgentClient(**sandbox.account, http=http, timeout=60.0) as agent, ThreadPoolExecutor(100) as threads:
        sold = list(threads.map(lambda _: agent.create_session(**BUY), range(MANY)))
    assert len({one.session_id for one in sold}) == MANY == sandbox.charges()
