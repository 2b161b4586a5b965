"""Commands that are given up in the middle: nothing is stranded, nothing hangs, and nobody else pays for it."""

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import SESSION, bought
from conftest import BUY
from wrapping import Wrapped, records

SOUND = {"base_url": "https://api.example/v1", "api_key": "key"}
BOUGHT = hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')
READ = hopline.Response(status=200, body=b'{"success":true,"data":{"balance":1}}')


def answer(request: hopline.Request) -> hopline.Response:
    return BOUGHT if request.method == "POST" else READ


def lose(request: hopline.Request) -> hopline.Response:
    raise hopline.Failed("closed", "maybe")


class Gate(Wrapped):
    """The folder, whose disk stands still at the first call of a name."""

    def __init__(self, path: Path, at: str) -> None:
        super().__init__(path, self._pass)
        self.reached, self.opened = threading.Event(), threading.Event()
        self._at = at

    def _pass(self, name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == self._at and not self.reached.is_set():
            self.reached.set()
            assert self.opened.wait(60)
        return call()


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def doubt(folder: Path) -> str:
    """The record of a purchase in doubt, of a client that has ended."""
    with hopline.AgentClient(**SOUND, http=lose, attempts=1, store=hopline.FolderStore(folder)) as agent:
        with pytest.raises(hopline.InDoubt) as caught:
            agent.create_session(**BUY, intent="job-1")
    assert caught.value.record is not None
    return caught.value.record


def test_a_settlement_that_is_cancelled_as_its_record_goes_strands_nobody(tmp_path: Path) -> None:
    record = doubt(tmp_path)

    async def life() -> None:
        store = Gate(tmp_path, "delete")
        async with hopline.AsyncAgentClient(**SOUND, http=answer, store=store) as agent:
            settling = asyncio.create_task(agent.settle(record, happened=False, early=True))
            await until(store.reached.is_set)
            settling.cancel()
            threading.Timer(0.2, store.opened.set).start()
            with pytest.raises(asyncio.CancelledError):
                await settling
            async with asyncio.timeout(60):
                assert (await agent.create_session(**BUY, intent="job-1")).session_id == "s-1"

    asyncio.run(life())


def test_a_settlement_that_is_interrupted_as_its_record_goes_strands_nobody(tmp_path: Path) -> None:
    record = doubt(tmp_path)

    left = [KeyboardInterrupt()]

    def interrupted(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "delete" and left:
            raise left.pop()
        return call()

    with hopline.AgentClient(**SOUND, http=answer, store=Wrapped(tmp_path, interrupted)) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.settle(record, happened=False, early=True)
        assert agent.create_session(**BUY, intent="job-1").session_id == "s-1"


def test_a_task_that_is_cancelled_does_not_make_its_event_loop_wait_for_the_disk(tmp_path: Path) -> None:
    async def life() -> None:
        store = Gate(tmp_path, "put")
        async with hopline.AsyncAgentClient(**SOUND, http=answer, store=store) as agent:
            buying = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
            await until(store.reached.is_set)
            buying.cancel()
            assert (await agent.get_balance()).raw == {"balance": 1} and not store.opened.is_set()
            store.opened.set()
            with pytest.raises(asyncio.CancelledError) as caught:
                await buying
            assert "cancelled before it had any effect" in str(caught.value.__notes__)
        assert not records(tmp_path)

    asyncio.run(life())


def test_an_event_loop_that_ends_in_the_middle_of_a_save_leaves_nothing_half_done(tmp_path: Path) -> None:
    store = Gate(tmp_path, "put")

    async def life() -> None:
        agent = hopline.AsyncAgentClient(**SOUND, http=answer, store=store)
        buying.append(asyncio.create_task(agent.create_session(**BUY, intent="job-1")))
        await until(store.reached.is_set)
        buying[0].cancel()
        await asyncio.sleep(0)
        threading.Timer(0.2, store.opened.set).start()

    buying: list[asyncio.Task[Any]] = []
    asyncio.run(life())
    assert not records(tmp_path)


def test_a_save_is_not_held_up_by_another_commands_send(tmp_path: Path) -> None:
    from hopline._commands import begin
    from hopline._work import Owner

    asked, answered = threading.Event(), threading.Event()

    def http(request: hopline.Request) -> hopline.Response:
        asked.set()
        assert answered.wait(60)
        return READ

    store = Gate(tmp_path, "put")
    store.opened.set()
    with hopline.AgentClient(**SOUND, http=http, store=store) as agent:
        core, buyer = agent._engine.core, Owner("create_session", True, 0)
        begin("create_session", BUY, {})(core, buyer)
        core.leave(buyer)  # its put is to be done by whoever comes next
        reading = threading.Thread(target=agent.get_balance)
        reading.start()
        assert asked.wait(60)
        assert store.reached.wait(60) and not answered.is_set()
        answered.set()
        reading.join()


def test_a_request_that_others_wait_for_is_not_broken_off_with_the_task_that_began_it() -> None:
    sends: list[str] = []

    async def life() -> None:
        asked, answered = asyncio.Event(), asyncio.Event()

        async def http(request: hopline.Request) -> hopline.Response:
            sends.append(request.method)
            asked.set()
            await answered.wait()
            return hopline.Response(status=200, body=b'{"success":true,"code":0,"data":{"id":7}}')

        reseller = hopline.AsyncResellerClient(base_url="https://api.example/api", token="t", account="a", http=http)
        first, second = (asyncio.create_task(reseller.create_user(username="shop-17", password="a long password", intent="user")) for _ in range(2))
        await asked.wait()
        await until(lambda: reseller._engine.core.present()[0] == 2)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        answered.set()
        assert (await second).id == 7
        await reseller.close()

    asyncio.run(life())
    assert sends == ["POST"], "it may not be sent again"


def test_owners_that_gave_up_do_not_wake_each_other_for_sends_that_nobody_wants(tmp_path: Path) -> None:
    from hopline._commands import begin
    from hopline._work import Owner

    woken: deque[Owner] = deque()
    with hopline.AgentClient(**SOUND, http=answer, store=hopline.FolderStore(tmp_path)) as agent:
        core, asks = agent._engine.core, agent._engine.asks

        def work() -> list[tuple[int, Any]]:
            """The calls of the store for those who were woken, once they come to rest."""
            made: list[tuple[int, Any]] = []
            for _ in range(100):
                if not woken:
                    return made
                match core.turn(owner := woken.popleft()):
                    case ("ask", step, call):
                        made.append((step, call))
                        woken.append(owner)
                    case ("done", _):
                        core.leave(owner)
                    case _:
                        pass
            raise AssertionError("they wake each other all the time")

        owners = [Owner("create_session", True, 0) for _ in range(2)]
        for owner in owners:
            owner.listen(lambda owner=owner: woken.append(owner))
            match begin("create_session", BUY, {})(core, owner):
                case ("ask", step, call):
                    asks.make(step, call, None, False)
                case other:
                    raise AssertionError(other)
        # Another owner finds their sends, and they give up before they begin them.
        looker = Owner("get_balance", False, 0)
        assert core.turn(looker)[0] == "done"
        core.leave(looker)
        for owner in owners:
            core.give_up(owner)
        woken.clear()
        woken.extend(owners)
        # Their records are to go, on a disk that is slow.
        deletes = work()
        assert [call[0] for _, call in deletes] == ["delete"] * 2
        for step, call in deletes:
            asks.make(step, call, None, False)
        assert work() == [] and core.present()[2]


@contextmanager
def interrupted_once(ready: threading.Event) -> Iterator[None]:
    """Ctrl-C, once something has happened."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def strike() -> None:
        main = threading.main_thread().ident
        assert main is not None
        ready.wait()
        time.sleep(0.1)
        signal.pthread_kill(main, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    threading.Thread(target=strike, daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no signals to threads")
def test_an_interrupt_ends_a_resumption_of_all_at_once(tmp_path: Path) -> None:
    with hopline.AgentClient(**SOUND, http=lose, attempts=1, store=hopline.FolderStore(tmp_path)) as first:
        for n in range(3):
            with suppress(hopline.InDoubt):
                first.create_session(**BUY, intent=f"job-{n}")
    asked, over = threading.Event(), threading.Event()

    def http(request: hopline.Request) -> Any:
        asked.set()
        over.wait(60)
        return READ

    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(tmp_path)) as agent:
        with interrupted_once(asked), pytest.raises(KeyboardInterrupt):
            agent.resume_all()
        assert not over.is_set(), "the service has not answered yet"
        assert sorted(saved.intent or "" for saved in agent.saved()) == ["job-0", "job-1", "job-2"]
        over.set()


def test_a_resumption_of_all_that_is_cancelled_leaves_nothing_to_others(tmp_path: Path) -> None:
    with hopline.AgentClient(**SOUND, http=lose, attempts=1, store=hopline.FolderStore(tmp_path)) as first:
        for n in range(3):
            with suppress(hopline.InDoubt):
                first.create_session(**BUY, intent=f"job-{n}")
    store, asked = Gate(tmp_path, "list"), list[str]()

    def http(request: hopline.Request) -> hopline.Response:
        asked.append(request.url)
        return READ

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=http, store=store) as agent:
            resuming = asyncio.create_task(agent.resume_all())
            await until(store.reached.is_set)
            resuming.cancel()
            store.opened.set()
            with pytest.raises(asyncio.CancelledError):
                await resuming
            await agent.get_balance()
            assert [url.rsplit("/", 1)[1] for url in asked] == ["balance"]
            assert sorted(saved.intent or "" for saved in await agent.saved()) == ["job-0", "job-1", "job-2"]

    asyncio.run(life())


def test_a_resumption_of_all_that_is_interrupted_as_a_record_goes_tells_what_it_was_of(tmp_path: Path) -> None:
    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as first:
        first.open_session(**BUY, keep=True)
    left = [KeyboardInterrupt()]

    def interrupted(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "delete" and left:
            raise left.pop()
        return call()

    def http(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=200, body=SESSION.replace(b"active", b"expired"))

    with hopline.AgentClient(**SOUND, http=http, store=Wrapped(tmp_path, interrupted)) as agent:
        with pytest.raises(KeyboardInterrupt) as caught:
            agent.resume_all()
        assert "session_id `s-1`" in str(caught.value.__notes__) and not agent.saved()


def test_a_failed_exchange_names_the_store_only_where_the_store_failed(tmp_path: Path) -> None:
    def full(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "put":
            raise OSError(28, "No space left on device")
        return call()

    with hopline.AgentClient(**SOUND, http=lose, attempts=1, store=Wrapped(tmp_path, full)) as agent:
        with pytest.raises(hopline.StoreError) as caught:
            agent.create_session(**BUY)
        assert "No space left" in str(caught.value.__notes__)
        with pytest.raises(hopline.HoplineError) as other:
            agent.get_balance()
        assert not hasattr(other.value, "__notes__")


def test_a_store_that_can_not_let_go_of_a_name_does_not_take_a_purchases_place(tmp_path: Path) -> None:
    def broken(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "release":
            raise OSError(5, "the store is broken")
        return call()

    def refuse(request: hopline.Request) -> hopline.Response:
        return hopline.Response(status=402, body=b'{"success":false,"error":{"code":"INSUFFICIENT_BALANCE","message":"no"}}')

    with hopline.AgentClient(**SOUND, http=refuse, store=Wrapped(tmp_path, broken)) as agent, pytest.raises(hopline.Refused):
        agent.create_session(**BUY, intent="job-1")


def test_what_becomes_a_note_keeps_what_it_can_be_found_by(tmp_path: Path) -> None:
    def http(request: hopline.Request) -> hopline.Response:
        return lose(request) if request.method == "DELETE" else answer(request)

    with hopline.AgentClient(**SOUND, http=http, attempts=1, store=hopline.FolderStore(tmp_path)) as agent:
        with pytest.raises(ZeroDivisionError) as caught, agent.open_session(**BUY, credentials=False):
            raise ZeroDivisionError
        [note] = caught.value.__notes__
        assert note.startswith("and the session `s-1` could not be ended: ") and "session_id `s-1`" in note and "record `" in note
