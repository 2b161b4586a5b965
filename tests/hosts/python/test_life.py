"""A session's whole life over real HTTP, through each HTTP client."""

import asyncio
import threading
from decimal import Decimal
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox
from transports import ASYNC, SYNC, async_http, sync_http


@pytest.mark.parametrize("name", SYNC)
def test_a_session_is_bought_used_rotated_and_ended(name: str, sandbox: Sandbox) -> None:
    with sync_http(name) as http, hopline.AgentClient(**sandbox.account, http=http) as agent:
        public = agent.list_public_products(limit=2)
        assert len(public.items) == 2 and public.next_cursor
        offered = agent.list_products(type="dynamic", in_stock=True)
        cheapest = min(offered.items, key=lambda product: product.price)
        assert isinstance(cheapest.price, Decimal)
        before = agent.get_balance().raw["balance"]
        opened = agent.open_session(
            session_type="dynamic", product_no=cheapest.product_no, quantity=Decimal("0.5"), intent="job-1", credentials=True
        )
        with opened as session:
            assert session.phase == "ready" and session.proxy.password and session.proxy.full_url
            verdict = agent.observe(session_id=session.session_id, seen=403)
            assert verdict is not None and verdict.verdict == "rotate" and verdict.reason is not None
            old = session.proxy.password
            rotated = agent.rotate_session(session_id=session.session_id, reason=verdict.reason, include_credentials=True)
            assert rotated.proxy is not None and rotated.proxy.password != old
            assert agent.get_session(session_id=session.session_id).raw["status"] == "active"
        assert before - agent.get_balance().raw["balance"] == cheapest.price * Decimal("0.5")
    state = sandbox.state()
    assert [session["status"] for session in state["sessions"]] == ["terminated"] and len(state["charges"]) == 1


@pytest.mark.parametrize("name", ASYNC)
def test_the_same_life_in_tasks(name: str, sandbox: Sandbox) -> None:
    async def life() -> None:
        async with async_http(name) as http, hopline.AsyncAgentClient(**sandbox.account, http=http) as agent:
            offered = await agent.list_products(type="dynamic")
            async with agent.open_session(session_type="dynamic", product_no=offered.items[0].product_no, credentials=True) as session:
                assert session.phase == "ready" and session.proxy.username
                await agent.rotate_session(session_id=session.session_id)
            kept = await agent.open_session(session_type="dynamic", product_no=offered.items[0].product_no)
            assert (await agent.wait_session(session_id=kept.session_id, credentials=True)).proxy.password
            await agent.terminate_session(session_id=kept.session_id)

    asyncio.run(life())
    assert [session["status"] for session in sandbox.state()["sessions"]] == ["terminated", "terminated"]


def test_a_block_gives_a_session_that_rotates_by_itself_a_new_exit_without_a_further_call(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_session(**BUY, credentials=True, auto_rotate=True) as session:
        kept = agent.observe(session_id=session.session_id, seen=200)
        assert kept is not None and kept.verdict == "keep" and kept.session is None
        [before], old = sandbox.state()["sessions"], session.proxy.password
        seen = agent.observe(session_id=session.session_id, seen=403)
        assert seen is not None and seen.verdict == "rotated" and seen.reason == "http_403"
        assert seen.session is not None and seen.session.proxy is not None
        assert seen.session.proxy.password == session.proxy.password != old
        [after] = sandbox.state()["sessions"]
        assert before["exit"] != after["exit"]
        again = agent.observe(session_id=session.session_id, seen=403)
        assert again is not None and again.verdict == "unsure" and "a moment ago" in (again.why or "")


def test_what_keeps_a_session_from_rotating_is_raised_where_it_was_seen(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account, attempts=1) as agent, agent.open_session(**BUY, auto_rotate=True) as session:
        sandbox.fault("rotate_session", kind="error", code="BACKEND_ERROR")
        with pytest.raises(hopline.HoplineError) as raised:
            agent.observe(session_id=session.session_id, seen="captcha")
        assert raised.value.operation == "rotate_session" and raised.value.code == "BACKEND_ERROR"
        with pytest.raises(hopline.Invalid, match="auto_rotate"):
            agent.open_session(session_type="static", product_no="static-us", duration=1, auto_rotate=True)
    assert sandbox.charges() == 1


def test_tasks_that_see_a_block_at_once_wait_for_one_rotation(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            async with agent.open_session(**BUY, credentials=True, auto_rotate=True) as session:
                # A caller that comes once it has rotated is told so, and these are to come before.
                sandbox.fault("rotate_session", kind="delay", ms=1000)
                seen = await asyncio.gather(*(agent.observe(session_id=session.session_id, seen="block") for _ in range(20)))
                assert {one.verdict for one in seen if one} == {"rotated"} and len(seen) == 20
                assert len({one.session.proxy.password for one in seen if one and one.session and one.session.proxy}) == 1

    asyncio.run(life())
    assert sandbox.state()["executions"]["rotate_session"] == 1


def test_a_static_session_and_one_that_is_to_be_kept_live_on(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        with agent.open_session(**BUY, keep=True) as kept:
            pass
        with agent.open_session(session_type="static", product_no="static-us", duration=1) as bought:
            pass
        renewed = agent.renew_session(session_id=bought.session_id, duration=1)
        assert renewed.raw["session_id"] == bought.session_id
    assert {session["session_id"]: session["status"] for session in sandbox.state()["sessions"]} == {
        kept.session_id: "active",
        bought.session_id: "active",
    }


def test_a_session_that_was_ended_inside_its_block_is_not_ended_again(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_session(**BUY, intent="once") as session:
        agent.terminate_session(session_id=session.session_id)
        sandbox.fault("terminate_session", kind="error", code="SESSION_NOT_FOUND", status=404)


def test_threads_and_tasks_use_one_client_at_once(sandbox: Sandbox) -> None:
    agent = hopline.AgentClient(**sandbox.account)
    failures: list[BaseException] = []

    def buy(n: int) -> None:
        try:
            with agent.open_session(**BUY, intent=f"thread-{n}") as session:
                assert session.phase == "ready"
        except BaseException as failure:
            failures.append(failure)

    async def tasks() -> None:
        async with async_http("aiohttp") as http:
            other = agent.to_async(http=http)

            async def one(n: int) -> None:
                async with other.open_session(**BUY, intent=f"task-{n}") as session:
                    assert session.phase == "ready"

            await asyncio.gather(*(one(n) for n in range(20)))

    threads = [threading.Thread(target=buy, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    asyncio.run(tasks())
    for thread in threads:
        thread.join()
    agent.close()
    assert not failures and sandbox.charges() == 40
    assert {session["status"] for session in sandbox.state()["sessions"]} == {"terminated"}


def test_events_tell_how_it_goes_in_threads_and_tasks(sandbox: Sandbox) -> None:
    told: list[hopline.Event] = []
    sandbox.fault("create_session", kind="drop_after")
    agent = hopline.AgentClient(**sandbox.account, on_event=told.append)
    listened = agent.events()
    agent.open_session(**BUY, intent="job-1")
    agent.close()
    assert list(listened) == told
    told = [event for event in told if event.event not in ("sent", "answered")]
    assert [event.event for event in told] == ["repeating", "charged", "accepted", "status"]
    assert told[0].because is not None and told[0].because.effect == "unknown" and told[3].phase == "ready"

    async def life() -> list[str]:
        async with hopline.AsyncAgentClient(**sandbox.account) as other:
            events = other.events()
            await other.open_session(**BUY)
        return [event.event async for event in events if event.event not in ("sent", "answered")]

    assert asyncio.run(life())[-2:] == ["accepted", "status"]


def test_a_listener_that_raises_stops_nothing(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    def listen(event: Any) -> None:
        raise RuntimeError("the listener is broken")

    with hopline.AgentClient(**sandbox.account, on_event=listen) as agent:
        assert agent.open_session(**BUY).phase == "ready"
    assert "listener" in caplog.text


def test_the_environment_names_the_account(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPLINE_BASE_URL", sandbox.ready["agent_url"])
    monkeypatch.setenv("HOPLINE_API_KEY", sandbox.ready["api_key"])
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with hopline.AgentClient() as agent:
        assert agent.get_balance().raw["currency"] == "USD"
