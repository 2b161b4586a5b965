"""Sessions that are not usable at their deadline: an error that leads to the session, which is let go of or ended."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import hopline
import pytest
from conftest import BUY
from sandbox import Sandbox


@pytest.fixture
def slow() -> Iterator[Sandbox]:
    service = Sandbox("--seed", "7", "--provisioning-ms", "3600000")
    yield service
    service.close()


def statuses(sandbox: Sandbox) -> list[str]:
    return [session["status"] for session in sandbox.state()["sessions"]]


def test_under_an_intent_the_next_start_goes_on_with_it(slow: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**slow.account, store=hopline.FolderStore(tmp_path)) as first, pytest.raises(hopline.NotReady) as caught:
        first.open_session(**BUY, intent="job-17", deadline=0)
    error = caught.value
    assert (error.kind, error.effect, error.intent, error.advice) == ("not_ready", "done", "job-17", "wait_session")
    assert error.record and error.session.session_id == error.session_id and (error.session.phase, error.session.session.status) == ("pending", "creating")
    with hopline.AgentClient(**slow.account, store=hopline.FolderStore(tmp_path)) as second:
        with pytest.raises(hopline.NotReady):
            second.resume(intent="job-17", deadline=0)
        slow.control("clock", {"advance_ms": 3_600_000})
        with second.open_session(**BUY, intent="job-17", deadline=60) as session:
            assert (session.session_id, session.phase) == (error.session_id, "ready")
    assert slow.charges() == 1


def test_without_an_intent_it_is_ended_before_the_error_is_raised(slow: Sandbox) -> None:
    with hopline.AgentClient(**slow.account) as agent, pytest.raises(hopline.NotReady) as caught, agent.open_session(**BUY, deadline=0):
        raise AssertionError("there is no session to use")
    assert caught.value.session.phase == "ended" and statuses(slow) == ["terminated"]

    async def life() -> None:
        async with hopline.AsyncAgentClient(**slow.account) as agent:
            with pytest.raises(hopline.NotReady) as caught:
                async with agent.open_session(**BUY, deadline=0):
                    raise AssertionError("there is no session to use")
            assert isinstance(caught.value.session, hopline.AsyncOpenSession)

    asyncio.run(life())
    assert statuses(slow) == ["terminated", "terminated"]


def test_with_keep_its_handle_is_the_callers_and_who_allows_it_gets_no_error(slow: Sandbox) -> None:
    with hopline.AgentClient(**slow.account) as agent:
        with pytest.raises(hopline.NotReady) as caught:
            agent.open_session(**BUY, deadline=0, keep=True)
        with pytest.raises(hopline.NotReady) as waited:
            agent.wait_session(session_id=caught.value.session_id or "", deadline=0)
        assert (waited.value.effect, statuses(slow)) == ("none", ["creating"])
        caught.value.session.terminate()
        opened = agent.open_session(**BUY, deadline=0, allow_pending=True)
        assert (opened.phase, statuses(slow)) == ("pending", ["terminated", "creating"])
