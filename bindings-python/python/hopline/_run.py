"""The drivers: what a thread does, and what a task does, from the start of a command to its result."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ._engine import Begin, Engine, explain
from ._http import Failed
from ._http._base import Transport
from ._http._choose import AsyncTransport, in_thread
from ._waiting import wait
from ._work import Ask, Done, Owner, Send, Taken, Wait

T = TypeVar("T")


def run(engine: Engine, send: Transport, operation: str, begin: Begin) -> Taken | None:
    """Runs a command in this thread until it has ended. Where there is none, does what is left to do."""
    woken = threading.Event()
    owner = Owner(woken.set)
    engine.admit(owner, operation)
    try:
        engine.enter(owner, operation, begin)
        return _work(engine, send, owner, woken)
    except BaseException as why:
        if not engine.is_forked():
            engine.do_again(owner)
            engine.give_up(owner)
            _work(engine, send, owner, woken)
            explain(operation, owner, why)
        raise
    finally:
        if engine.leave(owner):
            engine.finish()


def _work(engine: Engine, send: Transport, owner: Owner, woken: threading.Event) -> Taken | None:
    while True:
        woken.clear()
        match engine.turn(owner):
            case Ask() as work:
                engine.ask_store(owner, work)
            case Send() as work:
                if not engine.begin(owner, work):
                    continue
                try:
                    in_thread(send, work.request, lambda answer, work=work: engine.answered(work, answer))  # type: ignore[misc]
                except RuntimeError:  # there can be no more threads
                    engine.answered(work, Failed("other", "never"))
            case Wait(seconds):
                wait(woken, seconds)
            case Done():
                return owner.taken


class Disk:
    """Threads that wait for the disk in place of an event loop."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self.ending: set[asyncio.Task[Any]] = set()
        """Commands that were given up, and what is left to do of them."""

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Does it meanwhile."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(4, "hopline-store")
        return self._pool.submit(work)

    def close(self) -> None:
        """Lets the threads end."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)


async def run_async(engine: Engine, send: AsyncTransport, disk: Disk, operation: str, begin: Begin) -> Taken | None:
    """Runs a command in this task until it has ended. A task that is cancelled cancels its command."""
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(woken.set)
        except RuntimeError:  # the loop is closed, and nobody waits
            return

    owner = Owner(wake)
    engine.admit(owner, operation)
    try:
        engine.enter(owner, operation, begin)
        taken = await _work_async(engine, send, disk, owner, woken)
    except GeneratorExit:  # the coroutine was dropped, and may wait for nothing any more
        engine.give_up(owner)
        _end_here(engine, owner)
        raise
    except BaseException as why:
        if engine.is_forked():
            raise
        engine.give_up(owner)
        ending = loop.create_task(_end(engine, send, disk, owner, woken))
        disk.ending.add(ending)
        ending.add_done_callback(disk.ending.discard)
        await asyncio.shield(ending)
        explain(operation, owner, why)
        raise
    _leave(engine, disk, owner)
    return taken


async def _end(engine: Engine, send: AsyncTransport, disk: Disk, owner: Owner, woken: asyncio.Event) -> None:
    """What is left to do of a command that was given up. The loop need not wait for it, and may end meanwhile."""
    try:
        await _work_async(engine, send, disk, owner, woken)
    except BaseException:  # the loop itself ends
        _end_here(engine, owner)
        raise
    _leave(engine, disk, owner)


def _leave(engine: Engine, disk: Disk, owner: Owner) -> None:
    if engine.leave(owner):
        disk.submit(engine.finish)


def _end_here(engine: Engine, owner: Owner) -> None:
    ended = threading.Event()
    owner.wake = ended.set
    _work(engine, _never, owner, ended)
    if engine.leave(owner):
        engine.finish()


def _never(request: object) -> Any:
    raise Failed("aborted", "never")


async def _work_async(engine: Engine, send: AsyncTransport, disk: Disk, owner: Owner, woken: asyncio.Event) -> Taken | None:
    loop = asyncio.get_running_loop()
    while True:
        woken.clear()
        match engine.turn(owner):
            case Ask() as work:
                disk.submit(lambda work=work: engine.ask_store(owner, work))  # type: ignore[misc]
            case Send() as work:
                _send(engine, send, disk, owner, work)
            case Wait(None):
                await woken.wait()
            case Wait(seconds):
                alarm = loop.call_later(seconds or 0, woken.set)
                try:
                    await woken.wait()
                finally:
                    alarm.cancel()
            case Done():
                return owner.taken


_exchanges: set["asyncio.Task[Any]"] = set()
"""An event loop itself does not keep its tasks alive."""
_NOT_SENT = object()


def _send(engine: Engine, send: AsyncTransport, disk: Disk, owner: Owner, work: Send) -> None:
    """One send, in a task of its own. Exceptions are values here, since the core is to hear of them."""
    loop = asyncio.get_running_loop()

    async def exchange() -> Any:
        if engine.asks_before_sends:
            is_begun = await asyncio.wrap_future(disk.submit(lambda: engine.begin(owner, work)))
        else:
            is_begun = engine.begin(owner, work)
        if not is_begun:
            return _NOT_SENT
        try:
            return await send(work.request)
        except Exception as error:
            return error

    def done(task: "asyncio.Task[Any]") -> None:
        _exchanges.discard(task)
        answer = Failed("aborted", "maybe" if work.is_begun else "never") if task.cancelled() else task.exception() or task.result()
        if answer is not _NOT_SENT:
            engine.answered(work, answer)

    task = loop.create_task(exchange())
    _exchanges.add(task)
    task.add_done_callback(done)
    work.request.on_abort(lambda: loop.call_soon_threadsafe(task.cancel))
