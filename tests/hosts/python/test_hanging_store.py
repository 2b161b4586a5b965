"""Stores that do not answer, or raise what is no `Exception`: nobody waits for ever, and nothing is kept from others."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import SOUND, bought, never, until, until_dropped
from conftest import BUY
from memory_store import LeasedMemoryStore, Memory, MemoryStore
from wrapping import Wrapped, records


class Stops(BaseException):
    """As of gevent's GreenletExit."""


def failing(path: Path, at: str, why: Callable[[], BaseException], times: int) -> hopline.Store:
    left = [why() for _ in range(times)]

    def around(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == at and left:
            raise left.pop()
        return call()

    return Wrapped(path, around)


every = pytest.mark.parametrize("why", [asyncio.CancelledError, SystemExit, Stops])


@every
def test_in_a_task_it_is_a_store_error(tmp_path: Path, why: Callable[[], BaseException]) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=never, store=failing(tmp_path, "put", why, 1)) as agent:
            with pytest.raises(hopline.StoreError) as caught:
                async with asyncio.timeout(30):
                    await agent.create_session(**BUY, intent="job-1")
            assert caught.value.effect == "none" and caught.value.__notes__ == [f"the store said: {why.__name__}"]

    asyncio.run(life())


@every
def test_a_thread_is_interrupted_once_and_what_it_asked_is_asked_again(tmp_path: Path, why: Callable[[], BaseException]) -> None:
    with hopline.AgentClient(**SOUND, http=never, store=failing(tmp_path, "claim", why, 3)) as agent:
        with pytest.raises(why):
            agent.create_session(**BUY, intent="job-1")
        assert not agent.saved()
        other = hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path))
        assert other.create_session(**BUY, intent="job-1").session_id == "s-1"
        other.close()


@every
def test_what_is_done_in_the_background_goes_on(tmp_path: Path, why: Callable[[], BaseException]) -> None:
    deletes = 0

    def around(name: str, call: Callable[[], Any], *_: object) -> Any:
        nonlocal deletes
        if name == "delete":
            deletes += 1
            if deletes == 1:
                raise OSError("the disk is full")
            if deletes == 2:
                raise why()
        return call()

    # The record can't be deleted, which is tried again after 1 and 2 seconds by nobody's thread.
    agent = hopline.AgentClient(**SOUND, http=bought, store=Wrapped(tmp_path, around))
    assert agent.create_session(**BUY).session_id == "s-1"
    until(lambda: deletes >= 3)
    agent.close()
    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as other:
        assert not other.saved()


@every
@pytest.mark.parametrize("at", ["release", "close"])
def test_what_a_store_raises_as_it_lets_go_keeps_it_from_nobody(tmp_path: Path, at: str, why: Callable[[], BaseException]) -> None:
    store = failing(tmp_path, at, why, 1)
    hopline.AgentClient(**SOUND, http=never, store=store).close()
    with hopline.AgentClient(**SOUND, http=bought, store=store) as agent:
        assert agent.create_session(**BUY, intent="job-1").session_id == "s-1"


def test_of_what_a_store_raises_the_log_has_only_the_type(caplog: pytest.LogCaptureFixture) -> None:
    class Telling(LeasedMemoryStore):
        def _tell(self, *_: object) -> Any:
            raise ConnectionError("postgres://user:canary@db")

        vouches = close = _tell

        def release(self, names: object, /) -> None:
            if names is None:
                self._tell()

    with hopline.AgentClient(**SOUND, http=never, store=Telling(Memory())) as agent, pytest.raises(hopline.Unavailable):
        agent.get_balance()
    assert caplog.text.count("raised ConnectionError") >= 3 and "canary" not in caplog.text


def test_the_background_looks_again_when_there_is_more_to_do() -> None:
    from hopline._background import Background

    class Core:
        looks = 0

        def tend(self, thread: int) -> Any:
            self.looks += 1
            return ("wait", 3600.0) if self.looks < 3 else ("done", None)

        def is_to_finish(self) -> bool:
            return False

    class Engine:
        core, pid = Core(), os.getpid()

        def gives_dropped_back(self) -> bool:
            return False

    engine: Any = Engine()
    background = Background(engine)
    assert background.look(0)
    for looks in (1, 2, 3):
        until(lambda looks=looks: engine.core.looks >= looks)
        background.wake()


class Silent(LeasedMemoryStore):
    """The store does not say whether its claims stand before the test is over."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.over = threading.Event()

    def vouches(self) -> bool:
        return self.over.wait(3600)


def blocking(store: hopline.Store) -> None:
    with hopline.AgentClient(**SOUND, timeout=0.2, http=never, store=store) as agent:
        agent.create_session(**BUY, intent="job-1")


def in_a_task(store: hopline.Store) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, timeout=0.2, http=never, store=store) as agent:
            async with asyncio.timeout(30):
                await agent.create_session(**BUY, intent="job-1")

    asyncio.run(life())


@pytest.mark.parametrize("buy", [blocking, in_a_task])
def test_claims_are_vouched_for_within_the_time_of_a_request_or_nothing_is_sent(buy: Callable[[hopline.Store], None]) -> None:
    memory = Memory()
    store = Silent(memory)
    began = time.monotonic()
    with pytest.raises(hopline.Unavailable) as caught:
        buy(store)
    store.over.set()
    assert caught.value.effect == "none" and caught.value.__notes__ == ["the store did not vouch for its claims"]
    assert time.monotonic() - began < 30 and not memory.owners


class Stuck(MemoryStore):
    """The store does not let go before the test is over."""

    def __init__(self, at: str) -> None:
        super().__init__(Memory())
        self.at, self.over = at, threading.Event()

    def release(self, names: Any, /) -> None:
        if names is None and self.at == "release":
            self.over.wait(3600)

    def close(self) -> None:
        if self.at == "close":
            self.over.wait(3600)


def closed(store: hopline.Store) -> None:
    hopline.AgentClient(**SOUND, http=never, store=store).close(timeout=0.2)


def closed_in_a_task(store: hopline.Store) -> None:
    async def life() -> None:
        await hopline.AsyncAgentClient(**SOUND, http=never, store=store).close(timeout=0.2)

    asyncio.run(life())


def closed_in_a_call(store: hopline.Store) -> None:
    agent = hopline.AgentClient(**SOUND, http=bought, store=store, on_event=lambda event: event.event == "accepted" and agent.close())
    agent.open_session(**BUY, intent="job-1", credentials=False)


def dropped(store: hopline.Store) -> None:
    agent = hopline.AgentClient(**SOUND, http=never, store=store)
    with pytest.warns(ResourceWarning, match="without being closed") as warned:
        del agent
        until_dropped(warned)


@pytest.mark.parametrize("at", ["release", "close"])
@pytest.mark.parametrize("end", [closed, closed_in_a_task, closed_in_a_call, dropped])
def test_who_ends_a_client_does_not_wait_for_ever_for_its_store(
    end: Callable[[hopline.Store], None], at: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Stuck(at)
    failsafe = threading.Timer(60, store.over.set)
    failsafe.start()
    try:
        end(store)
        assert not store.over.is_set()
    finally:
        failsafe.cancel()
        store.over.set()
    assert "a client was closed, but" in caplog.text or "a client was dropped, but" in caplog.text
    until(lambda: not asking())


def asking() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hopline-store"]


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """There can be no more threads that ask a store."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "hopline-store":
            raise RuntimeError("can't create new thread at interpreter shutdown")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("read", [lambda agent: agent.get_balance(), lambda agent: agent.to_async().get_balance()])
def test_where_no_thread_can_ask_whether_claims_stand_nothing_was_sent(read: Callable[[hopline.AgentClient], Any]) -> None:
    async def awaited(agent: hopline.AgentClient) -> None:
        reading = read(agent)
        if asyncio.iscoroutine(reading):
            await reading

    memory = Memory()
    with hopline.AgentClient(**SOUND, http=never, store=LeasedMemoryStore(memory)) as agent, pytest.raises(hopline.Unavailable) as caught:
        asyncio.run(awaited(agent))
    assert caught.value.effect == "none" and caught.value.__notes__ == ["the store did not vouch for its claims"]


@pytest.mark.usefixtures("no_threads")
def test_where_no_thread_can_ask_the_store_a_task_is_told(tmp_path: Path) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=never, store=hopline.FolderStore(tmp_path)) as agent:
            with pytest.raises(hopline.StoreError) as caught:
                await agent.create_session(**BUY, intent="job-1")
            assert caught.value.effect == "unknown" and caught.value.__notes__ == ["the store said: no thread could be started"]

    asyncio.run(life())


def test_what_fails_before_a_request_is_begun_has_sent_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr("hopline._tasks._send", fail)

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=never, store=hopline.FolderStore(tmp_path)) as agent:
            with pytest.raises(MemoryError) as caught:
                await agent.create_session(**BUY, intent="job-1")
            assert "cancelled before it had any effect" in str(caught.value.__notes__)
        assert not records(tmp_path)

    asyncio.run(life())


def test_a_dropped_call_waits_for_nothing_where_no_thread_can_be_started(request: pytest.FixtureRequest) -> None:
    asked, over = threading.Event(), threading.Event()

    class Hangs(MemoryStore):
        def claim(self, names: Any, most: int, /) -> Any:
            asked.set()
            over.wait(60)
            return super().claim(names, most)

    loop = asyncio.new_event_loop()
    agent = hopline.AsyncAgentClient(**SOUND, http=never, store=Hangs(Memory()))
    call = agent.create_session(**BUY, intent="job-1")

    async def begin() -> None:
        loop.create_task(call)
        while not asked.is_set():
            await asyncio.sleep(0.01)

    loop.run_until_complete(begin())
    request.getfixturevalue("no_threads")
    call.close()
    assert not over.is_set() and asking()
    over.set()
    loop.run_until_complete(agent.close())
    loop.close()


def test_one_thread_asks_whether_claims_stand_and_many_that_hang_are_bounded() -> None:
    store = Silent(Memory())

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, timeout=0.5, http=bought, store=store) as agent:
            store.over.set()
            for _ in range(5):
                await agent.get_session(session_id="s-1")
            assert len(asking()) == 1
            store.over.clear()
            stuck = [asyncio.create_task(agent.get_session(session_id="s-1")) for _ in range(40)]
            ended = await asyncio.gather(*stuck, return_exceptions=True)
            assert {type(one) for one in ended} == {hopline.Unavailable} and len(asking()) <= 16
            store.over.set()

    asyncio.run(life())


def test_work_is_done_by_the_threads_that_there_are(request: pytest.FixtureRequest) -> None:
    from hopline._threads import Threads

    threads, going, done = Threads(4), threading.Event(), threading.Event()
    threads.submit(lambda: going.wait(60))
    request.getfixturevalue("no_threads")
    threads.submit(done.set)
    going.set()
    assert done.wait(60)
    threads.close()
    with pytest.raises(RuntimeError):
        threads.submit(done.set)


PROGRAM = """
import asyncio, sys, threading
import hopline
from memory_store import Memory, MemoryStore

class Hangs(MemoryStore):
    def claim(self, names, most, /):
        asked.append(names)
        threading.Event().wait()

asked = []

async def main():
    agent = hopline.AsyncAgentClient(base_url="https://api.example/v1", api_key="key", store=Hangs(Memory()))
    tasks = [asyncio.create_task(agent.create_session(session_type="dynamic", product_no="p", intent=f"job-{n}")) for n in range(6)]
    while len(asked) < 4:
        await asyncio.sleep(0.01)
    if sys.argv[1] == "closed":
        await agent.close(timeout=0.1)

asyncio.run(main())
print("ended")
"""


@pytest.mark.parametrize("how", ["closed", "dropped"])
def test_a_program_ends_though_its_store_hangs(how: str) -> None:
    here = Path(__file__).parent
    ended = subprocess.run([sys.executable, "-c", PROGRAM, how], cwd=here, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


def test_what_hangs_holds_up_nothing_but_itself() -> None:
    opened = threading.Event()

    class Vouching(LeasedMemoryStore):
        def vouches(self) -> bool:
            return self.asked < 6 and self._wait() or True

        def _wait(self) -> bool:
            self.asked += 1
            return opened.wait(60)

    async def life() -> None:
        store = Vouching(Memory())
        async with hopline.AsyncAgentClient(**SOUND, http=bought, store=store) as agent:
            stuck = [asyncio.create_task(agent.get_session(session_id=f"s-{n}")) for n in range(6)]
            async with asyncio.timeout(15):
                while store.asked < 6:
                    await asyncio.sleep(0.01)
                assert (await agent.get_session(session_id="s-1")).session_id == "s-1"
            opened.set()
            await asyncio.gather(*stuck)

    asyncio.run(life())
