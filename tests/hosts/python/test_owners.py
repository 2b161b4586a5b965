"""The owner of a name: nobody, once nothing is under way under it and nobody holds it. The names of a client become free, however it ends."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import SESSION, SOUND, bought, until, until_dropped
from conftest import BUY
from memory_store import Memory, MemoryStore
from wrapping import Wrapped


def lost(request: hopline.Request) -> Any:
    raise hopline.Failed("closed", "maybe")


def refused(request: hopline.Request) -> hopline.Response:
    return hopline.Response(status=402, body=b'{"success":false,"error":{"code":"INSUFFICIENT_BALANCE","message":"no"}}')


def attempted(call: Callable[[], object]) -> None:
    try:
        call()
    except hopline.HoplineError:
        pass


COMMANDS: dict[str, Callable[[hopline.AgentClient, str], object]] = {
    "create_session": lambda agent, record: agent.create_session(**BUY, intent="job-2"),
    "create_session with a key": lambda agent, record: agent.create_session(**BUY, idempotency_key="key-2"),
    "create_session without either": lambda agent, record: agent.create_session(**BUY),
    "open_session that is kept": lambda agent, record: agent.open_session(**BUY, intent="job-2", keep=True).__exit__(None, None, None),
    "open_session that is ended": lambda agent, record: agent.open_session(**BUY, intent="job-2").__exit__(None, None, None),
    "wait_session": lambda agent, record: agent.wait_session(session_id="s-1", deadline=0),
    "terminate_session": lambda agent, record: agent.terminate_session(session_id="s-1", intent="end"),
    "rotate_session": lambda agent, record: agent.rotate_session(session_id="s-1", reason="manual"),
    "observe": lambda agent, record: agent.observe(session_id="s-1", seen=403),
    "renew_session": lambda agent, record: agent.renew_session(session_id="s-1", duration=1),
    "report_session_event": lambda agent, record: agent.report_session_event(session_id="s-1", event={"status": 403}, intent="event"),
    "create_recharge": lambda agent, record: agent.create_recharge(amount=20, intent="money"),
    "update_budget": lambda agent, record: agent.update_budget(daily_limit_usd=5),
    "request": lambda agent, record: agent.request("POST", "/anything", body={}, intent="anything"),
    "get_balance": lambda agent, record: agent.get_balance(),
    "walk_products": lambda agent, record: list(agent.walk_products()),
    "saved": lambda agent, record: agent.saved(),
    "resume": lambda agent, record: agent.resume(record).__exit__(None, None, None),  # type: ignore[union-attr]
    "resume an intent": lambda agent, record: agent.resume(intent="job-1"),
    "resume nothing": lambda agent, record: agent.resume(intent="nothing"),
    "settle": lambda agent, record: agent.settle(record, happened=False, early=True),
    "settle as it became": lambda agent, record: agent.settle(record, happened=True, became="s-9"),
    "forget": lambda agent, record: agent.forget(record),
    "reconcile": lambda agent, record: agent.reconcile(record),
}


@pytest.mark.parametrize("answers", [bought, lost, refused])
@pytest.mark.parametrize("command", COMMANDS)
def test_after_a_command_no_name_is_owned_that_is_not_held(command: str, answers: Callable[[hopline.Request], Any]) -> None:
    memory = Memory()
    with hopline.AgentClient(**SOUND, http=lost, store=MemoryStore(memory)) as before, pytest.raises(hopline.InDoubt) as caught:
        before.create_session(**BUY, intent="job-1")
    agent = hopline.AgentClient(**SOUND, http=answers, store=MemoryStore(memory))
    attempted(lambda: COMMANDS[command](agent, caught.value.record or ""))
    # The client is not called again.
    assert memory.owners == {}
    agent.close()


AWAITED: dict[str, Callable[[hopline.AsyncAgentClient, str], Any]] = {
    "create_session": lambda agent, record: agent.create_session(**BUY, intent="job-2"),
    "open_session": lambda agent, record: left(agent.open_session(**BUY, intent="job-2")),
    "open_session that is kept": lambda agent, record: left(agent.open_session(**BUY, intent="job-2", keep=True)),
    "resume_all": lambda agent, record: agent.resume_all(),
    "settle": lambda agent, record: agent.settle(record, happened=False, early=True),
    "forget": lambda agent, record: agent.forget(record),
    "saved": lambda agent, record: agent.saved(),
    "a purchase that is cancelled": lambda agent, record: cancelled(agent.create_session(**BUY, intent="job-2")),
    "a resumption that is cancelled": lambda agent, record: cancelled(agent.resume(record)),
}


async def left(opening: hopline.AsyncOpening) -> None:
    async with opening:
        pass


async def cancelled(call: Coroutine[Any, Any, object]) -> None:
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize("answers", [bought, lost, refused])
@pytest.mark.parametrize("command", AWAITED)
def test_after_a_tasks_command_no_name_is_owned_that_is_not_held(command: str, answers: Callable[[hopline.Request], Any]) -> None:
    memory = Memory()
    with hopline.AgentClient(**SOUND, http=lost, store=MemoryStore(memory)) as before, pytest.raises(hopline.InDoubt) as caught:
        before.create_session(**BUY, intent="job-1")

    async def life() -> None:
        agent = hopline.AsyncAgentClient(**SOUND, http=answers, store=MemoryStore(memory))
        try:
            await AWAITED[command](agent, caught.value.record or "")
        except hopline.HoplineError:
            pass
        # The client is not called again.
        assert memory.owners == {}
        await agent.close()

    asyncio.run(life())


def test_a_session_is_held_until_it_is_given_back() -> None:
    memory = Memory()
    with hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory)) as agent:
        session = agent.open_session(**BUY, intent="job-1")
        assert len(memory.owners) == 1
        assert agent.release_session(session_id=session.session_id) and memory.owners == {}
        [again] = [agent.open_session(**BUY, intent="job-1")]
        assert len(memory.owners) == 1
        with again:
            pass
        assert memory.owners == {}


class Breaking(MemoryStore):
    """A store whose disk fails where an answer is to be stored."""

    is_broken = True

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        if self.is_broken and b"s-1" in data:
            raise OSError(5, "the disk is broken")
        return super().put(name, data, new=new, keep_for=keep_for, release=release)


def background() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hopline-store"]


def test_what_a_store_could_not_do_is_done_in_the_background_once_it_can() -> None:
    memory, told = Memory(), list[hopline.Event]()
    store = Breaking(memory)
    agent = hopline.AgentClient(**SOUND, http=bought, store=store, on_event=told.append)
    assert agent.create_session(**BUY, intent="job-1").session_id == "s-1", "the answer is given all the same"
    assert [event.event for event in told].count("store_failed") == 1 and len(memory.owners) == 1
    store.is_broken = False
    # The client is not called again.
    until(lambda: not memory.owners)
    assert b"s-1" in next(iter(memory.records.values())).data
    until(lambda: not background())
    agent.close()


def test_a_client_that_is_dropped_while_its_store_is_broken_lets_go() -> None:
    memory = Memory()
    agent = hopline.AgentClient(**SOUND, http=bought, store=Breaking(memory))
    agent.create_session(**BUY, intent="job-1")
    assert len(memory.owners) == 1 and background()
    with pytest.warns(ResourceWarning, match="without being closed") as warned:
        del agent
        until_dropped(warned)
    assert not memory.owners
    until(lambda: not background())


def test_closing_waits_for_other_threads_and_then_nothing_is_owned() -> None:
    memory, asked = Memory(), threading.Event()
    came: list[BaseException] = []

    def http(request: hopline.Request) -> Any:
        broken_off = threading.Event()
        request.on_abort(broken_off.set)
        asked.set()
        broken_off.wait(60)
        raise hopline.Failed("aborted", "maybe")

    agent = hopline.AgentClient(**SOUND, http=http, store=MemoryStore(memory))

    def buy() -> None:
        try:
            agent.create_session(**BUY, intent="job-1")
        except hopline.HoplineError as error:
            came.append(error)

    buying = threading.Thread(target=buy)
    buying.start()
    assert asked.wait(60) and len(memory.owners) == 1
    agent.close()
    assert memory.owners == {}
    buying.join(60)
    assert [type(error) for error in came] == [hopline.Cancelled]
    with hopline.AgentClient(**SOUND, http=lost, store=MemoryStore(memory)) as other:
        assert [saved.holds for saved in other.saved()] == ["in_doubt"]


def test_closing_in_a_listener_does_not_wait_for_itself() -> None:
    memory = Memory()
    agent = hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory), on_event=lambda event: agent.close(timeout=600))
    attempted(lambda: agent.open_session(**BUY, intent="job-1"))
    assert memory.owners == {}


def test_closing_an_async_client_waits_for_its_tasks() -> None:
    memory = Memory()

    async def life() -> None:
        asked = asyncio.Event()

        async def http(request: hopline.Request) -> hopline.Response:
            asked.set()
            await asyncio.sleep(60)
            raise AssertionError("it was given up")

        agent = hopline.AsyncAgentClient(**SOUND, http=http, store=MemoryStore(memory))
        buying = asyncio.create_task(agent.create_session(**BUY, intent="job-1"))
        await asked.wait()
        await agent.close()
        assert memory.owners == {}
        with pytest.raises(hopline.Cancelled):
            await buying

    asyncio.run(life())


def test_closing_does_not_wait_for_a_store_that_hangs(tmp_path: Path) -> None:
    reached, going = threading.Event(), threading.Event()

    def around(name: str, call: Callable[[], Any], *_: object) -> Any:
        if name == "put":
            reached.set()
            assert going.wait(60)
        return call()

    agent = hopline.AgentClient(**SOUND, http=bought, store=Wrapped(tmp_path, around))
    buying = threading.Thread(target=lambda: attempted(lambda: agent.create_session(**BUY, intent="job-1")))
    buying.start()
    assert reached.wait(60)
    agent.close(timeout=0.2)
    assert buying.is_alive()
    going.set()
    buying.join(60)
    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as other:
        assert other.create_session(**BUY, intent="job-1").session_id == "s-1"


def test_many_threads_buy_each_intent_once_and_leave_nothing_owned(tmp_path: Path) -> None:
    keys: dict[str, None] = {}

    def http(request: hopline.Request) -> hopline.Response:
        key = request.headers["idempotency-key"]
        keys[key] = None
        return hopline.Response(status=202, body=SESSION.replace(b"s-1", b"s-" + key.encode()))

    with hopline.AgentClient(**SOUND, http=http, store=hopline.FolderStore(tmp_path)) as agent:
        sold: list[str] = []

        def buy(intent: str) -> None:
            sold.append(agent.create_session(**BUY, intent=intent).session_id)

        threads = [threading.Thread(target=buy, args=(f"job-{n % 8}",)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [saved.whose for saved in agent.saved()] == ["free"] * 8
    assert len(keys) == len(set(sold)) == 8 and len(sold) == 64


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def forked(child: Callable[[], object]) -> int:
    """Forks a child that does something, and returns its process. The child ends with 0 if that returns something true."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            os._exit(0 if child() else 1)
        finally:
            os._exit(2)
    return pid


def is_misuse(call: Callable[[], object]) -> bool:
    try:
        call()
    except hopline.Misuse as misuse:
        return "fork" in str(misuse)
    return False


@needs_fork
def test_a_forked_child_that_uses_the_client_is_told_and_changes_nothing(tmp_path: Path) -> None:
    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as agent:
        agent.open_session(**BUY, intent="job-1")
        calls = [lambda: agent.open_session(**BUY, intent="job-1"), agent.saved, lambda: agent.release_session(session_id="s-1"), agent.resume_all]

        def child() -> bool:
            told = all(is_misuse(call) for call in calls)
            agent.close()
            gc.collect()
            return told

        assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 0
        assert [saved.whose for saved in agent.saved()] == ["mine"]


@needs_fork
def test_a_child_of_a_fork_does_not_keep_what_its_parent_had(tmp_path: Path) -> None:
    # The parent dies while its child lives.
    parent = """
import os, sys, time, hopline
def http(request):
    return hopline.Response(status=202, body=b'{"success":true,"data":{"session_id":"s-1","status":"active"}}')
agent = hopline.AgentClient(base_url="https://api.example/v1", api_key="key", http=http, store=hopline.FolderStore(sys.argv[1]))
agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="job-1")
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", parent, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    child = int(process.stdout.readline())
    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as agent:
        with pytest.raises(hopline.Busy):
            agent.open_session(**BUY, intent="job-1")
        process.kill()
        process.wait()
        os.kill(child, 0)  # it lives
        assert agent.open_session(**BUY, intent="job-1").session_id == "s-1"
    process.stdin.close()
    process.stdout.close()


@needs_fork
def test_a_child_that_is_forked_in_the_middle_of_a_call_is_told_and_its_parent_goes_on(tmp_path: Path) -> None:
    children: list[int] = []
    here = os.getpid()

    def fork(event: hopline.Event) -> None:
        if not children:
            children.append(os.fork())

    try:
        with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path), on_event=fork) as agent:
            session = agent.open_session(**BUY, intent="job-1")
    except hopline.Misuse as misuse:
        os._exit(0 if os.getpid() != here and "fork" in str(misuse) else 1)
    finally:
        if os.getpid() != here:
            os._exit(2)
    assert session.session_id == "s-1" and os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


@needs_fork
def test_a_child_may_open_the_same_folder_anew_while_its_parents_threads_use_it(tmp_path: Path) -> None:
    going = threading.Event()
    with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as agent:

        def look() -> None:
            while not going.is_set():
                agent.saved()

        looking = threading.Thread(target=look)
        looking.start()

        def child() -> bool:
            with hopline.AgentClient(**SOUND, http=bought, store=hopline.FolderStore(tmp_path)) as own:
                return own.create_session(**BUY, intent="child").session_id == "s-1"

        try:
            for _ in range(10):
                assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 0
        finally:
            going.set()
            looking.join()
