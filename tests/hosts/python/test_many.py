"""Many sessions at once in one client, and one intent many times."""

import asyncio
import threading
from pathlib import Path

import hopline
import pytest
from conftest import BUY
from memory_store import Memory, MemoryStore
from sandbox import Sandbox
from transports import async_http

MANY = 200


@pytest.mark.parametrize("name", ["aiohttp", "httpx", "threads"])
def test_two_hundred_sessions_of_one_async_client_end_as_they_should_though_answers_are_lost(
    name: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    # One in twenty of each kind of answer.
    for operation, times in {"create_session": 10, "get_session": 20, "terminate_session": 10}.items():
        sandbox.fault(operation, times=times, kind="drop_after")

    async def life() -> None:
        async with async_http(name) as http:
            agent = hopline.AsyncAgentClient(**sandbox.account, http=http, store=hopline.FolderStore(tmp_path))

            async def one(n: int) -> None:
                async with agent.open_session(**BUY, intent=f"job-{n}", credentials=True) as session:
                    assert session.phase == "ready" and session.proxy.password

            await asyncio.gather(*(one(n) for n in range(MANY)))
            await agent.close()

    asyncio.run(life())
    state = sandbox.state()
    assert len(state["charges"]) == len(state["sessions"]) == MANY
    assert {session["status"] for session in state["sessions"]} == {"terminated"}


def test_an_intent_that_is_started_twice_at_once_buys_once_in_threads(sandbox: Sandbox) -> None:
    sandbox.fault("create_session", kind="delay", ms=300)
    with hopline.AgentClient(**sandbox.account) as agent:
        came: list[str] = []
        threads = [threading.Thread(target=lambda: came.append(agent.open_session(**BUY, intent="job-1").session_id)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(came) == 8 and len(set(came)) == 1
        assert agent.open_session(**BUY, intent="job-1").session_id == came[0], "and again after that"
        with pytest.raises(hopline.Invalid, match="another request"):
            agent.open_session(session_type="static", product_no="static-us", intent="job-1")
    assert sandbox.charges() == 1


def test_an_intent_that_is_started_twice_at_once_buys_once_in_tasks(sandbox: Sandbox) -> None:
    async def life() -> set[str]:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:

            async def one() -> str:
                return (await agent.open_session(**BUY, intent="job-1")).session_id

            return set(await asyncio.gather(*(one() for _ in range(8))))

    assert len(asyncio.run(life())) == 1 and sandbox.charges() == 1


def test_an_intent_of_another_living_client_of_the_store_is_refused_and_free_after_it(sandbox: Sandbox, tmp_path: Path) -> None:
    memory = Memory()
    for name, stores in {"memory": lambda: MemoryStore(memory), "folder": lambda: hopline.FolderStore(tmp_path)}.items():
        with hopline.AgentClient(**sandbox.account, store=stores()) as first:
            bought = first.open_session(**BUY, intent=name)
            with hopline.AgentClient(**sandbox.account, store=stores()) as second:
                assert [(saved.whose, saved.session_id) for saved in second.saved()] == [("other", bought.session_id)]
                with pytest.raises(hopline.Busy) as caught:
                    second.open_session(**BUY, intent=name)
                assert (caught.value.effect, caught.value.session_id) == ("none", bought.session_id)
                assert second.wait_session(session_id=bought.session_id).phase == "ready", "it may be waited for all the same"
                first.close()
                assert second.open_session(**BUY, intent=name).session_id == bought.session_id
    assert sandbox.charges() == 2


def test_a_task_that_is_cancelled_leaves_its_purchase_in_doubt_and_others_go_on(sandbox: Sandbox, tmp_path: Path) -> None:
    async def life() -> None:
        async with async_http("aiohttp") as http:
            agent = hopline.AsyncAgentClient(**sandbox.account, http=http, store=hopline.FolderStore(tmp_path))
            sandbox.fault("create_session", kind="delay", ms=60_000)
            given_up = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
            while not sandbox.charges():
                await asyncio.sleep(0.01)
            other = asyncio.create_task(agent.create_session(**BUY, intent="job-2"))
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert (await other).session_id
            assert {saved.intent: saved.holds for saved in await agent.saved()}["job-1"] == "in_doubt"
            sandbox.control("clock", {"advance_ms": 60_000})
            assert (await agent.create_session(**BUY, intent="job-1")).session_id
            await agent.close()

    asyncio.run(life())
    assert sandbox.charges() == 2


def test_one_of_two_tasks_that_wait_for_an_intent_can_be_cancelled(sandbox: Sandbox) -> None:
    async def life() -> str:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            first = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
            second = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
            sandbox.fault("create_session", kind="delay", ms=400)
            await asyncio.sleep(0.1)
            first.cancel()
            return (await second).session_id

    assert asyncio.run(life()) and sandbox.charges() == 1
