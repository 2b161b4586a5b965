"""Clients and iterators that nobody has any more, closed clients: nothing is kept, nothing hangs."""

import asyncio
import datetime
import gc
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import until, until_dropped
from conftest import BUY
from hopline._failure import moment
from memory_store import Memory, MemoryStore
from wrapping import Wrapped

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}


def bought(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')


def test_a_client_that_is_dropped_warns_and_gives_its_intents_back(tmp_path: Path) -> None:
    memory = Memory()
    for stores in (lambda: MemoryStore(memory), lambda: hopline.FolderStore(tmp_path)):
        agent = hopline.AgentClient(**SOUND, http=bought, store=stores())
        agent.open_session(**BUY, intent="job-1")
        with pytest.warns(ResourceWarning, match="without being closed") as warned:
            del agent
            until_dropped(warned)
        with hopline.AgentClient(**SOUND, http=bought, store=stores()) as again:
            assert again.open_session(**BUY, intent="job-1").session_id == "s-1"


def test_a_client_that_is_dropped_where_warnings_are_errors_gives_its_intents_back_and_ends_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: raised.append(unraisable.exc_type))
    memory = Memory()
    agent = hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory))
    agent.open_session(**BUY, intent="job-1")
    listening = threading.Thread(target=list, args=(agent.events(),), daemon=True)
    listening.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del agent
        until(lambda: gc.collect() is not None and raised)
    assert raised == [ResourceWarning]
    with hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory)) as again:
        assert again.open_session(**BUY, intent="job-1").session_id == "s-1"
    listening.join(60)
    assert not listening.is_alive()


def test_a_closed_client_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    agent = hopline.AgentClient(**SOUND)
    agent.close()
    del agent
    gc.collect()
    assert not [warning for warning in recwarn if warning.category is ResourceWarning and "hopline" in str(warning.message)]


def test_an_iterator_of_events_that_is_dropped_listens_no_more() -> None:
    with hopline.AgentClient(**SOUND) as agent:
        for _ in range(1000):
            agent.events()
        gc.collect()
        assert len(agent._engine.listeners.streams) == 0


def test_events_of_a_closed_client_end_or_are_refused() -> None:
    agent = hopline.AgentClient(**SOUND)
    listened = agent.events()
    agent.close()
    assert list(listened) == []
    with pytest.raises(hopline.Misuse, match="closed"):
        agent.events()

    async def life() -> None:
        other = hopline.AsyncAgentClient(**SOUND)
        listened = other.events()
        await other.close()
        assert [event async for event in listened] == []
        with pytest.raises(hopline.Misuse, match="closed"):
            other.events()

    asyncio.run(life())


def test_events_that_nobody_takes_are_dropped_and_counted() -> None:
    with hopline.AgentClient(**SOUND) as agent:
        listened = agent.events()
        for n in range(1500):
            agent._engine.listeners.tell(f'{{"event":"status","operation":"open_session","status":"{n}"}}')
        assert listened.dropped == 500 and next(listened).status == "500"
        listened.close()
        assert list(listened) == []


def test_a_time_beyond_pythons_last_year_is_its_last_moment_and_a_year_is_the_longest_wait() -> None:
    def http(request: hopline.Request) -> hopline.Response:
        headers = {"date": "Thu, 01 Jan 1970 00:00:00 GMT", "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}
        return hopline.Response(status=503, headers=headers, body=b"busy")

    with hopline.AgentClient(**SOUND, http=http) as agent, pytest.raises(hopline.HoplineError) as caught:
        agent.get_balance()
    waits = caught.value.retry_at and caught.value.retry_at - datetime.datetime.now(datetime.UTC)
    assert waits is not None and datetime.timedelta(364) < waits <= datetime.timedelta(365)
    assert moment(10**15) == datetime.datetime.max.replace(tzinfo=datetime.UTC)


def test_an_event_loop_is_not_held_up_by_a_blocking_callable() -> None:
    answered = threading.Event()

    def http(request: hopline.Request) -> hopline.Response:
        assert answered.wait(60)
        return hopline.Response(status=200, body=b'{"success":true,"data":{}}')

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=http) as agent:
            reading = asyncio.create_task(agent.get_balance())
            await asyncio.sleep(0.1)
            answered.set()
            await reading

    begun = time.monotonic()
    asyncio.run(life())
    assert time.monotonic() - begun < 30


def test_an_event_loop_is_not_held_up_by_a_slow_store(tmp_path: Path) -> None:
    going = threading.Event()

    def slowly(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name in ("claim", "list"):
            assert going.wait(60)
        return call()

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=bought, store=Wrapped(tmp_path, slowly)) as agent:
            tasks = [asyncio.create_task(agent.create_session(**BUY, intent="job-1")), asyncio.create_task(agent.saved())]
            await asyncio.sleep(0.1)
            await agent.get_session(session_id="s-1")
            going.set()
            await asyncio.gather(*tasks)

    asyncio.run(life())
