"""The work of a client, and who does it when an event loop ends or stands still, a thread dies, a listener raises, or the client is closed."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import hopline
import pytest
from canned import SESSION, SOUND, bought, until, until_dropped
from conftest import BUY
from memory_store import Memory, MemoryStore
from sandbox import Sandbox

ENDED = SESSION.replace(b"active", b"terminated")


def storing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hopline-store"]


class Ends(BaseException):
    """As of gevent's GreenletExit."""


# Terminations of a client that is being closed.


class Terminating:
    """A service that answers a termination once the client is being closed; first with a 503, where it is busy."""

    def __init__(self, is_busy: bool) -> None:
        self.agent: hopline.AgentClient | hopline.AsyncAgentClient | None = None
        self.is_busy, self.sent, self.others = is_busy, 0, 0
        self.asked = threading.Event()

    def __call__(self, request: hopline.Request) -> hopline.Response:
        agent = self.agent
        if request.method != "DELETE":
            self.others += 1
            self.asked.set()
            until(lambda: agent is None or agent._engine.is_shut)
            return hopline.Response(status=503, body=b"")
        self.sent += 1
        self.asked.set()
        if not self.is_busy:
            until(lambda: agent is None or agent._engine.is_shut)
        elif self.sent == 1:
            return hopline.Response(status=503, body=b"")
        return hopline.Response(status=200, body=ENDED)


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_termination_in_a_thread_is_still_sent_though_another_thread_closes_the_client(is_busy: bool) -> None:
    service = Terminating(is_busy)
    agent = service.agent = hopline.AgentClient(**SOUND | {"attempts": 3}, http=service)
    ended: list[object] = []
    ending = threading.Thread(target=lambda: ended.append(agent.terminate_session(session_id="s-1").raw["status"]))
    ending.start()
    assert service.asked.wait(60)
    if is_busy:
        until(lambda: not agent._engine.core.present()[1])
    agent.close(timeout=60)
    assert agent._engine.over.is_known
    ending.join(60)
    assert ended == ["terminated"] and service.sent == (2 if is_busy else 1)


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_termination_in_a_task_is_still_sent_though_the_client_is_closed(is_busy: bool) -> None:
    service = Terminating(is_busy)

    async def life() -> None:
        agent = service.agent = hopline.AsyncAgentClient(**SOUND | {"attempts": 3}, http=service)
        ending = asyncio.create_task(agent.terminate_session(session_id="s-1"))
        while not service.asked.is_set() or (is_busy and agent._engine.core.present()[1]):
            await asyncio.sleep(0.01)
        await agent.close(timeout=60)
        assert agent._engine.over.is_known
        assert (await ending).raw["status"] == "terminated" and service.sent == (2 if is_busy else 1)

    asyncio.run(life())


def test_beside_terminations_all_is_cancelled_when_a_client_is_closed() -> None:
    service = Terminating(False)
    agent = service.agent = hopline.AgentClient(**SOUND | {"attempts": 5}, http=service)
    failed: list[object] = []

    def read() -> None:
        with pytest.raises(hopline.Cancelled) as caught:
            agent.get_balance()
        failed.append(caught.value.effect)

    reading = threading.Thread(target=read)
    reading.start()
    assert service.asked.wait(60)
    ending = threading.Thread(target=lambda: agent.terminate_session(session_id="s-1"))
    ending.start()
    until(lambda: service.sent)
    agent.close(timeout=60)
    reading.join(60)
    ending.join(60)
    assert failed == ["none"] and (service.others, service.sent) == (1, 1)


def test_a_pool_that_is_drained_takes_its_lease_back_and_ends_its_session_though_the_client_is_closed(sandbox: Sandbox) -> None:
    agent = hopline.AgentClient(**sandbox.account)
    pool = agent.open_pool("shop", size=1, **BUY, daily_cap_usd=100)
    lease = pool.acquire()
    failed: list[BaseException] = []

    def drain() -> None:
        try:
            pool.drain(60)
        except BaseException as error:
            failed.append(error)

    draining = threading.Thread(target=drain)
    draining.start()
    until(lambda: agent._engine.core.present()[0])
    closing = threading.Thread(target=lambda: agent.close(timeout=60))
    closing.start()
    until(lambda: agent._engine.is_shut)
    lease.release()
    draining.join(30)
    assert not draining.is_alive() and not failed
    closing.join(60)
    assert agent._engine.over.is_known
    assert [session["status"] for session in sandbox.state()["sessions"]] == ["terminated"]


# Event loops that are closed, or stand still.


def waiting(request: hopline.Request) -> hopline.Response:
    """A service whose sessions are never ready."""
    answer = bought(request)
    return hopline.Response(status=answer.status, body=answer.body.replace(b"active", b"pending"))


async def begin(agent: hopline.AsyncAgentClient, tasks: list[Any]) -> None:
    tasks.append(asyncio.ensure_future(agent.open_session(**BUY, intent="job-1", deadline=3600)))
    while not agent._engine.follows("s-1"):
        await asyncio.sleep(0.01)


def test_a_task_whose_loop_was_closed_is_collected_with_its_client_which_gives_its_intents_back(recwarn: pytest.WarningsRecorder) -> None:
    memory = Memory()
    loop = asyncio.new_event_loop()
    tasks: list[Any] = []
    loop.set_exception_handler(lambda *_: None)
    loop.run_until_complete(begin(hopline.AsyncAgentClient(**SOUND, http=waiting, store=MemoryStore(memory)), tasks))
    assert memory.owners
    loop.close()
    tasks.clear()
    until_dropped(recwarn)
    assert not memory.owners
    with hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory)) as again:
        assert again.open_session(**BUY, intent="job-1").session_id == "s-1"


async def waits_until_its_deadline(agent: hopline.AsyncAgentClient) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(hopline.NotReady):
            await agent.wait_session(session_id="s-2", deadline=0.5)


def a_thread_waits_until_its_deadline(agent: hopline.AsyncAgentClient, engine: Any) -> None:
    def wait() -> None:
        other = hopline.AgentClient.__new__(hopline.AgentClient)
        other._send, other._engine = waiting, engine  # type: ignore[assignment]
        with pytest.raises(hopline.NotReady):
            other.wait_session(session_id="s-3", deadline=0.5)
        ended.append(True)

    ended: list[bool] = []
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(30)
    assert ended


@pytest.mark.parametrize("is_closed", [False, True])
def test_nobody_depends_on_a_loop_that_stands_still_or_is_closed(is_closed: bool) -> None:
    loop = asyncio.new_event_loop()
    tasks: list[Any] = []
    agent = hopline.AsyncAgentClient(**SOUND, http=waiting)
    loop.run_until_complete(begin(agent, tasks))
    if is_closed:
        loop.close()
    other = asyncio.new_event_loop()
    other.run_until_complete(waits_until_its_deadline(agent))
    a_thread_waits_until_its_deadline(agent, agent._engine)
    if is_closed:
        # The owner of the task can't be waited for.
        other.run_until_complete(agent.close(timeout=60))
    else:
        closing = other.create_task(agent.close(timeout=60))
        other.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.wait(tasks))
        other.run_until_complete(closing)
        loop.close()
        assert isinstance(tasks[0].exception(), hopline.Cancelled)
    assert agent._engine.over.is_known
    other.close()
    tasks.clear()


def test_a_client_is_finished_though_the_loop_of_one_that_sends_was_closed() -> None:
    loop = asyncio.new_event_loop()
    begun: list[object] = []

    async def hangs(request: hopline.Request) -> Any:
        begun.append(request)
        await asyncio.Event().wait()

    async def start() -> None:
        tasks.append(asyncio.ensure_future(agent.get_balance()))
        while not begun:
            await asyncio.sleep(0.01)

    tasks: list[Any] = []
    agent = hopline.AsyncAgentClient(**SOUND, http=hangs)
    loop.run_until_complete(start())
    loop.close()
    asyncio.run(agent.close(timeout=60))
    assert agent._engine.over.is_known
    tasks.clear()


# Listeners that raise what is no `Exception`.


def test_a_listener_ends_no_thread_that_does_the_work_of_nobodys_thread() -> None:
    aborted: list[bool] = []

    def hangs(request: hopline.Request) -> Any:
        over = threading.Event()
        request.on_abort(over.set)
        aborted.append(over.wait(20))
        raise hopline.Failed("aborted", "maybe")

    def listener(event: hopline.Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            heard.append(event.event)
            raise SystemExit

    heard: list[str] = []
    with hopline.AgentClient(**SOUND, timeout=0.2, http=hangs, on_event=listener) as agent:
        for _ in range(2):
            with pytest.raises(hopline.Unavailable):
                agent.get_balance()
    assert aborted == [True, True] and "answered" in heard


@pytest.mark.parametrize("why", [SystemExit, Ends, asyncio.CancelledError, ValueError])
@pytest.mark.parametrize("is_task", [False, True])
def test_what_a_listener_raises_changes_nothing(why: Callable[[], BaseException], is_task: bool) -> None:
    heard: list[str] = []

    def listener(event: hopline.Event) -> None:
        heard.append(event.event)
        raise why()

    async def life() -> None:
        async with hopline.AsyncAgentClient(**SOUND, http=bought, on_event=listener) as agent:
            assert (await agent.create_session(**BUY)).session_id == "s-1"

    if is_task:
        asyncio.run(life())
    else:
        with hopline.AgentClient(**SOUND, http=bought, on_event=listener) as agent:
            assert agent.create_session(**BUY).session_id == "s-1"
    assert {"sent", "answered"} <= set(heard)


def test_nor_does_what_a_handler_of_pythons_logging_raises() -> None:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            handled.append(record)
            raise Ends

    handled: list[object] = []
    handler = Handler()
    logging.getLogger("hopline").addHandler(handler)
    try:
        with hopline.AgentClient(**SOUND, http=bought, on_event=lambda _: 1 / 0) as agent:
            assert agent.create_session(**BUY).session_id == "s-1"
    finally:
        logging.getLogger("hopline").removeHandler(handler)
    assert handled


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
@pytest.mark.parametrize("number", [signal.SIGINT, getattr(signal, "SIGUSR1", signal.SIGINT)])
def test_a_signal_in_a_listener_interrupts_the_call_as_anywhere_else(number: signal.Signals) -> None:
    def end(*_: object) -> None:
        raise Ends

    def listener(event: hopline.Event) -> None:
        if event.event == "sent":
            signal.raise_signal(number)

    before = signal.signal(signal.SIGUSR1, end)
    try:
        with hopline.AgentClient(**SOUND, http=bought, on_event=listener) as agent:
            with pytest.raises(KeyboardInterrupt if number is signal.SIGINT else Ends):
                agent.create_session(**BUY)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_background_work_that_fails_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from hopline import _threads

    memory, deletes = Memory(), 0
    left: list[BaseException] = [Ends(), SystemExit()]

    class Failing(MemoryStore):
        def delete(self, name: str, /) -> bool:
            nonlocal deletes
            deletes += 1
            if deletes == 1:
                raise OSError("the disk is full")
            return super().delete(name)

    agent = hopline.AgentClient(**SOUND, http=bought, store=Failing(memory))
    begin = _threads.in_warm_thread

    def fail(work: Callable[[], object]) -> None:
        if left:
            raise left.pop()
        begin(work)

    monkeypatch.setattr("hopline._background.in_warm_thread", fail)
    assert agent.create_session(**BUY).session_id == "s-1"
    until(lambda: deletes >= 2 and not memory.owners)
    agent.close()
    assert not left


# Results, and the records that go once a caller has them.


def test_a_task_has_its_result_before_its_record_is_deleted_and_closing_waits_for_that() -> None:
    memory, going = Memory(), threading.Event()

    class Slow(MemoryStore):
        def delete(self, name: str, /) -> bool:
            assert going.wait(60)
            return super().delete(name)

    async def life() -> None:
        agent = hopline.AsyncAgentClient(**SOUND, http=bought, store=Slow(memory))
        assert (await agent.create_session(**BUY)).session_id == "s-1"
        assert len(memory.records) == 1
        going.set()
        await agent.close(timeout=60)
        assert agent._engine.over.is_known and not memory.records

    asyncio.run(life())


# Interrupts.


def test_an_intent_is_free_though_its_call_was_interrupted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(engine: Any, send: Any, owner: Any, begin: Any = None) -> Any:
        if begin is not None:
            begin(engine.core, owner)
        raise KeyboardInterrupt

    memory = Memory()
    agent = hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory))
    with monkeypatch.context() as patched:
        patched.setattr("hopline._run.work", work)
        with pytest.raises(KeyboardInterrupt):
            agent.create_session(**BUY, intent="job-1")
    until(lambda: agent._engine.core.present()[2] and not memory.owners)
    assert agent.create_session(**BUY, intent="job-1").session_id == "s-1"
    agent.close()


@pytest.fixture
def interrupted_starts(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The first thread that is started for a store begins, and its starter is interrupted then."""
    start, struck = threading.Thread.start, list[threading.Thread]()

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "hopline-store" and not struck:
            struck.append(thread)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    return struck


@pytest.mark.parametrize("is_dropped", [False, True])
def test_one_background_thread_works_and_none_stays_though_two_were_started(is_dropped: bool, interrupted_starts: list[threading.Thread]) -> None:
    before = set(storing())
    memory, deletes = Memory(), 0

    class Failing(MemoryStore):
        def delete(self, name: str, /) -> bool:
            nonlocal deletes
            deletes += 1
            if deletes <= 2:
                raise OSError("the disk is full")
            return super().delete(name)

    agent = hopline.AgentClient(**SOUND, http=bought, store=Failing(memory))
    with pytest.raises(KeyboardInterrupt):
        agent.create_session(**BUY)
    assert interrupted_starts
    agent.create_session(**BUY)
    until(lambda: deletes >= 3 or is_dropped)
    if is_dropped:
        with pytest.warns(ResourceWarning) as warned:
            del agent
            until_dropped(warned)
    else:
        agent.close()
    until(lambda: not set(storing()) - before)


def test_a_thread_whose_work_was_interrupted_before_it_came_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from hopline import _threads

    monkeypatch.setattr(_threads, "_LINGER", 0.02)
    done = threading.Event()
    _threads.in_warm_thread(done.set)
    assert done.wait(60)
    until(lambda: _threads._idle)
    taken = _threads._idle.pop()  # an interrupt comes here
    [thread] = [thread for thread in threading.enumerate() if thread.name == "hopline-send" and thread._args[0] is taken]  # type: ignore[attr-defined]
    thread.join(60)
    assert not thread.is_alive()


def test_threads_that_were_not_counted_end_too(interrupted_starts: list[threading.Thread]) -> None:
    from hopline._threads import Threads

    before = set(storing())
    threads, done = Threads(2), threading.Event()
    with pytest.raises(KeyboardInterrupt):
        threads.submit(done.set)
    threads.submit(done.set)
    assert done.wait(60) and len(set(storing()) - before) == 2
    threads.close()
    until(lambda: not set(storing()) - before)


class Core:
    """The core, whose closing is interrupted before or after it."""

    def __init__(self, core: Any, is_closed_first: bool) -> None:
        self._core, self._is_closed_first, self._left = core, is_closed_first, 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def close(self) -> bool:
        if self._left:
            self._left = 0
            if self._is_closed_first:
                self._core.close()
            raise KeyboardInterrupt
        is_to_finish: bool = self._core.close()
        return is_to_finish


@pytest.mark.parametrize("is_closed_first", [False, True])
def test_a_closing_that_was_interrupted_is_done_by_the_next_one(is_closed_first: bool) -> None:
    memory = Memory()
    agent = hopline.AgentClient(**SOUND, http=bought, store=MemoryStore(memory))
    agent.open_session(**BUY, intent="job-1", keep=True)
    assert memory.owners
    agent._engine.core = Core(agent._engine.core, is_closed_first)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt), agent:
        agent.close()
    assert agent._engine.over.is_known and not memory.owners


def test_a_store_is_released_once_though_its_release_was_begun_twice(interrupted_starts: list[threading.Thread]) -> None:
    closed: list[object] = []

    class Counting(MemoryStore):
        def close(self) -> None:
            closed.append(self)
            super().close()

    agent = hopline.AgentClient(**SOUND, http=bought, store=Counting(Memory()))
    with pytest.raises(KeyboardInterrupt):
        agent.close()
    agent.close()
    assert agent._engine.over.is_known and len(closed) == 1 and interrupted_starts


# Forks.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("is_asking", [False, True])
def test_a_child_of_a_fork_that_drops_the_coroutine_of_its_parent_calls_no_store(is_asking: bool) -> None:
    asked: list[str] = []
    held = threading.Event()

    class Telling(MemoryStore):
        def claim(self, names: Any, most: int, /) -> Any:
            asked.append("claim")
            if is_asking:
                held.wait(60)
            return super().claim(names, most)

        def put(self, name: str, data: bytes, /, **how: Any) -> bool:
            asked.append("put")
            return super().put(name, data, **how)

        def release(self, names: Any, /) -> None:
            asked.append("release")
            super().release(names)

    async def hangs(request: hopline.Request) -> Any:
        asked.append("send")
        await asyncio.Event().wait()

    async def life() -> None:
        agent = hopline.AsyncAgentClient(**SOUND, http=hangs, store=Telling(Memory()))
        call: Any = agent.create_session(**BUY, intent="job-1")
        task = asyncio.create_task(call)
        while ("claim" if is_asking else "send") not in asked:
            await asyncio.sleep(0.01)
        if (child := os.fork()) == 0:
            before = list(asked)
            call.close()
            time.sleep(0.2)
            os._exit(0 if asked == before and len(storing()) == 0 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        held.set()
        task.cancel()
        await asyncio.wait([task])
        await agent.close()

    asyncio.run(life())
