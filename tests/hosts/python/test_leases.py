"""A store of one's own whose claims end while their owner lives: nothing is sent under names that somebody else may have."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import hopline
import pytest
from canned import SOUND, bought, never, until, until_dropped
from conftest import BUY
from hopline._http import transport_for_threads
from memory_store import LeasedMemoryStore, Memory, MemoryStore
from sandbox import Sandbox


def interrupt() -> None:
    """Ctrl-C, while the main thread waits for the store."""
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(2)


def blocking(store: hopline.Store, http: Any) -> hopline.Session:
    with hopline.AgentClient(**SOUND, http=http, store=store) as agent:
        return agent.create_session(**BUY, intent="job-1")


def in_a_task(store: hopline.Store, http: Any) -> hopline.Session:
    async def life() -> hopline.Session:
        async with hopline.AsyncAgentClient(**SOUND, http=http, store=store) as agent:
            return await agent.create_session(**BUY, intent="job-1")

    return asyncio.run(life())


buyers = pytest.mark.parametrize("buy", [blocking, in_a_task])


@buyers
def test_nothing_is_sent_while_the_store_does_not_vouch_for_its_claims(buy: Callable[..., hopline.Session]) -> None:
    memory = Memory()
    store = LeasedMemoryStore(memory)
    store.is_sure = False
    with pytest.raises(hopline.Unavailable) as caught:
        buy(store, never)
    assert caught.value.effect == "none" and caught.value.__notes__ == ["the store did not vouch for its claims"]
    assert store.asked > 1 and not memory.records and not memory.owners


@buyers
def test_a_store_that_vouches_again_is_stored_to_anew_before_the_request(buy: Callable[..., hopline.Session]) -> None:
    said: list[str] = []

    class Store(LeasedMemoryStore):
        def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
            said.append("put")
            return super().put(name, data, new=new, keep_for=keep_for, release=release)

        def vouches(self) -> bool:
            said.append("vouches")
            return said.count("vouches") > 1

    def http(request: hopline.Request) -> hopline.Response:
        said.append("send")
        return bought(request)

    assert buy(Store(Memory()), http).session_id == "s-1"
    assert said[:5] == ["put", "vouches", "put", "vouches", "send"] and said.count("send") == 1


@buyers
def test_a_store_that_can_not_say_whether_its_claims_stand_is_not_trusted(buy: Callable[..., hopline.Session]) -> None:
    class Store(LeasedMemoryStore):
        def vouches(self) -> bool:
            raise OSError("the database is gone")

    with pytest.raises(hopline.Unavailable):
        buy(Store(Memory()), never)


def test_a_store_is_asked_before_reads_too() -> None:
    store = LeasedMemoryStore(Memory())
    with hopline.AgentClient(**SOUND, http=bought, store=store) as agent:
        agent.get_session(session_id="s-1")
    assert store.asked == 1


@buyers
def test_who_lost_its_name_while_its_request_was_out_is_told_what_it_bought(buy: Callable[..., hopline.Session]) -> None:
    memory = Memory()
    store, other = LeasedMemoryStore(memory), MemoryStore(memory)

    def http(request: hopline.Request) -> hopline.Response:
        [name] = memory.owners
        store.release([name])
        assert not isinstance(other.claim([name], 1), hopline.OwnedElsewhere)
        assert store.lost is not None
        store.lost([name])
        return bought(request)

    with pytest.raises(hopline.Busy) as caught:
        buy(store, http)
    assert (caught.value.effect, caught.value.session_id) == ("done", "s-1")
    assert list(memory.owners.values()) == [other] and b"s-1" not in next(iter(memory.records.values())).data


def test_a_held_session_is_taken_back_in_the_background_unless_another_client_has_it() -> None:
    memory = Memory()
    store = LeasedMemoryStore(memory)
    with hopline.AgentClient(**SOUND, http=bought, store=store) as agent:
        agent.open_session(**BUY, intent="job-1")
        [name] = memory.owners
        store.end_claims()
        # The client is not called meanwhile.
        until(lambda: memory.owners.get(name) is store)
        store.release([name])
        with hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory)) as other:
            assert other.open_session(**BUY, intent="job-1").session_id == "s-1"
            store.end_claims(name)
            until(lambda: not agent._engine.core.present()[3])
            assert not agent.release_session(session_id="s-1") and other.release_session(session_id="s-1")


def test_what_a_store_calls_keeps_no_client_alive_and_does_nothing_once_it_is_over() -> None:
    memory = Memory()
    store = LeasedMemoryStore(memory)
    agent = hopline.AgentClient(**SOUND, http=bought, store=store)
    agent.open_session(**BUY, intent="job-1")
    with pytest.warns(ResourceWarning, match="without being closed") as warned:
        del agent
        until_dropped(warned)
    assert not memory.owners and store.lost is not None
    store.lost()
    closed = LeasedMemoryStore(memory)
    hopline.AgentClient(**SOUND, http=bought, store=closed).close()
    closed.end_claims()
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "hopline-store"])
    assert not memory.owners


def test_who_is_interrupted_while_the_store_is_asked_leaves_the_request_to_others() -> None:
    class Store(LeasedMemoryStore):
        joined = threading.Event()

        def vouches(self) -> bool:
            self.asked += 1
            if self.asked == 1:
                assert self.joined.wait(60)
                interrupt()
            return True

    store = Store(Memory())
    came: list[hopline.Session] = []
    with hopline.AgentClient(**SOUND, http=bought, store=store) as agent:

        def join() -> None:
            until(lambda: store.asked)
            threading.Thread(target=lambda: (until(lambda: agent._engine.core.present()[0] == 2), store.joined.set())).start()
            came.append(agent.create_session(**BUY, intent="job-1"))

        joining = threading.Thread(target=join)
        joining.start()
        with pytest.raises(KeyboardInterrupt):
            agent.create_session(**BUY, intent="job-1")
        joining.join(60)
        assert [one.session_id for one in came] == ["s-1"]
        assert [saved.holds for saved in agent.saved()] == ["accepted"]


def test_who_is_interrupted_while_the_store_is_asked_has_bought_nothing() -> None:
    memory = Memory()

    class Store(LeasedMemoryStore):
        def vouches(self) -> bool:
            interrupt()
            return True

    with hopline.AgentClient(**SOUND, http=never, store=Store(memory)) as agent:
        with pytest.raises(KeyboardInterrupt) as caught:
            agent.create_session(**BUY, intent="job-1")
        assert "before it had any effect" in str(caught.value.__notes__) and not memory.records and not memory.owners


def test_a_client_that_was_dropped_while_its_store_was_asked_buys_nothing_for_its_pool(sandbox: Sandbox) -> None:
    asked, over, send = threading.Event(), threading.Event(), transport_for_threads(None)
    sent: list[str] = []

    class Store(LeasedMemoryStore):
        def vouches(self) -> bool:
            if sent:  # then it is asked for the purchase
                asked.set()
            return not sent or over.wait(60)

    def http(request: hopline.Request) -> hopline.Response:
        sent.append(request.method)
        return send(request)

    agent = hopline.AgentClient(**sandbox.account, http=http, store=Store(Memory()))
    pool = agent.open_pool("shop", size=1, keep_ready=1, **BUY, daily_cap_usd=100)
    try:
        assert asked.wait(60)
        with pytest.warns(ResourceWarning, match="without being closed") as warned:
            del agent, pool
            until_dropped(warned)
    finally:
        over.set()
    assert sent == ["GET"]
