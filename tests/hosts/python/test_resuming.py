"""Going on by an intent or a record, intents whose session is over, and who refused."""

import asyncio
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox


def test_an_intent_is_resumed_as_what_it_stands_for_and_never_buys(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as first:
        assert first.resume(intent="job-1") is None
        bought = first.open_session(**BUY, intent="job-1")
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as second:
        again = second.resume(intent="job-1", credentials=True, deadline=60)
        assert isinstance(again, hopline.OpenSession) and again.session_id == bought.session_id and again.proxy.password
        with again:
            pass
        assert second.resume(intent="other") is None
    assert sandbox.charges() == 1 and sandbox.state()["sessions"][0]["status"] == "terminated"


def test_a_session_in_doubt_is_resumed_with_options(sandbox: Sandbox, tmp_path: Path) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
            sandbox.fault("create_session", kind="drop_after")
            with pytest.raises(hopline.InDoubt) as caught:
                await agent.open_session(**BUY, intent="job-1", attempts=1)
            assert caught.value.record is not None
            opened = await agent.resume(caught.value.record, credentials=True, keep=True)
            assert isinstance(opened, hopline.AsyncOpenSession) and opened.proxy.password
            async with opened:
                pass
            assert await agent.resume(intent="nothing") is None

    asyncio.run(life())
    assert sandbox.charges() == 1 and sandbox.state()["sessions"][0]["status"] == "active"


@pytest.mark.parametrize("how", ["the same client", "another client"])
def test_an_intent_whose_session_is_over_says_so_and_buys_nothing(how: str, sandbox: Sandbox, tmp_path: Path) -> None:
    def start(agent: hopline.AgentClient) -> None:
        for call in (lambda: agent.open_session(**BUY, intent="job-1"), lambda: agent.resume(intent="job-1")):
            with pytest.raises(hopline.Ended) as caught:
                call()
            error = caught.value
            assert (error.effect, error.advice, error.session_id) == ("none", "new_intent", bought.session_id) and error.record
        assert agent.forget(error.record)
        assert agent.resume(intent="job-1") is None

    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
        with agent.open_session(**BUY, intent="job-1") as bought:
            pass
        if how == "the same client":
            start(agent)
    if how == "another client":
        with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as other:
            start(other)
    assert sandbox.charges() == 1


def test_a_resumption_names_one_thing() -> None:
    with hopline.AgentClient(base_url="https://api.example/v1", api_key="k") as agent:
        wrong: list[dict[str, Any]] = [{}, {"record": "r", "intent": "i"}]
        for names in wrong:
            with pytest.raises(hopline.Invalid, match="`intent` or a record must be given, and not both"):
                agent.resume(**names)


def test_a_refusal_says_whether_it_is_our_own(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account, daily_cap_usd=1000) as agent:
        with pytest.raises(hopline.Refused) as ours:
            agent.create_session(**BUY, max_unit_price=0)
        with pytest.raises(hopline.Refused) as theirs:
            agent.get_session(session_id="none")
    assert ours.value.is_refused_by_us and not theirs.value.is_refused_by_us
