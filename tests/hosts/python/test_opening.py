"""A session that a task opens: a coroutine like any other, which buys once."""

import asyncio
import gc
import warnings

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox


def test_an_opening_buys_once_however_it_is_used(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            opening = agent.open_session(**BUY)
            opened = await opening
            with pytest.raises(RuntimeError, match="already awaited"):
                async with opening:
                    pass
            with pytest.raises(RuntimeError, match="already awaited"):
                await opening
            assert sandbox.charges() == 1
            async with opened as session:
                assert session is opened and session.phase == "ready"
            async with await agent.open_session(**BUY, keep=True):
                pass

    asyncio.run(life())
    assert sorted(session["status"] for session in sandbox.state()["sessions"]) == ["active", "terminated"]


def test_an_opening_can_be_a_task(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            alone = asyncio.create_task(agent.open_session(**BUY, intent="alone"))
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(agent.open_session(**BUY, intent=f"job-{n}")) for n in range(3)]
            gathered = await asyncio.gather(agent.open_session(**BUY), asyncio.wait_for(agent.open_session(**BUY), 60))
            opened = [await alone, *(task.result() for task in tasks), *gathered]
            assert len({session.session_id for session in opened}) == 6
            assert all(isinstance(session, hopline.AsyncOpenSession) for session in opened)

    asyncio.run(life())
    assert sandbox.charges() == 6


def test_an_opening_that_nobody_awaits_says_so_and_buys_nothing(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            agent.open_session(**BUY)
            gc.collect()
            await agent.get_balance()

    with pytest.warns(RuntimeWarning, match="open_session' was never awaited"):
        asyncio.run(life())
    assert sandbox.charges() == 0


def test_an_opening_that_is_closed_buys_nothing_and_says_nothing(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            agent.open_session(**BUY).close()
            gc.collect()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(life())
    assert sandbox.charges() == 0
