"""Stores that do not answer, or raise what is no `Exception`: nobody waits for ever, and nothing is kept from others."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from memory_store import LeasedMemoryStore, Memory
from wrapping import Wrapped

SOUND: dict[str, Any] = {"base_url": "https://api.example/v1", "api_key": "key", "attempts": 1}
SESSION = b'{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}'


def bought(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=202 if request.method == "POST" else 200, body=SESSION)


def never(request: hopline.Request) -> Any:
    raise AssertionError("nothing was to be sent")


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


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


def test_the_background_looks_again_when_there_is_more_to_do() -> None:
    from hopline._background import Background
    from hopline._work import Wait

    class Engine:
        looks = 0

        def tend(self, owner: object) -> Wait | None:
            self.looks += 1
            return Wait(3600) if self.looks < 3 else None

        def is_to_finish(self) -> bool:
            return False

    engine: Any = Engine()
    background = Background(engine)
    for looks in (1, 2, 3):
        background.start()
        until(lambda looks=looks: engine.looks >= looks)


class Silent(LeasedMemoryStore):
    """It does not say whether its claims stand before the test is over."""

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
