"""The drivers: what a thread does, and what a task does, from the start of a command to its result."""

import asyncio
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from ._engine import Begin, Engine, explain
from ._http import Failed
from ._http._base import Transport
from ._http._choose import AsyncTransport, in_thread
from ._waiting import wait
from ._work import Ask, Done, Owner, Send, Taken, Wait


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


_THREADS = 4
_PATIENCE = 5.0
"""How many seconds the end of an event loop waits for a store."""


class Disk:
    """Threads that wait for the disk in place of an event loop. None of them keeps a program from ending."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._threads = 0
        self.ending: set[asyncio.Task[Any]] = set()
        """Commands that were given up, and what is left to do of them."""

    def submit(self, work: Callable[[], object]) -> None:
        """Does it meanwhile."""
        if self._threads < _THREADS:
            queue = self._work  # a thread keeps no client alive
            in_background(lambda: _serve(queue))
            self._threads += 1
        self._work.put(work)

    def close(self) -> None:
        """Lets the threads end."""
        for _ in range(self._threads):
            self._work.put(None)
        self._threads = 0

    def __del__(self) -> None:
        self.close()


def _serve(queue: "SimpleQueue[Callable[[], object] | None]") -> None:
    while (work := queue.get()) is not None:
        work()
        del work


def in_background(work: Callable[[], object]) -> None:
    """Does it in a thread of its own, which a program that ends does not wait for."""
    threading.Thread(target=work, name="hopline-store", daemon=True).start()


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
        await asyncio.wait([ending], timeout=_PATIENCE)
        ending.cancel()  # a store that has not answered by now is waited for by a thread
        explain(operation, owner, why)
        raise
    _leave(engine, disk, owner)
    return taken


async def _end(engine: Engine, send: AsyncTransport, disk: Disk, owner: Owner, woken: asyncio.Event) -> None:
    """What is left to do of a command that was given up. The loop need not wait for it, and may end meanwhile."""
    try:
        await _work_async(engine, send, disk, owner, woken)
    except GeneratorExit:
        _end_here(engine, owner)
        raise
    except BaseException:  # the loop itself ends, and waits for all of these at once
        await asyncio.wait([asyncio.wrap_future(_end_there(engine, owner))], timeout=_PATIENCE)
        raise
    _leave(engine, disk, owner)


def _leave(engine: Engine, disk: Disk, owner: Owner) -> None:
    if engine.leave(owner):
        in_background(engine.finish)


def _end_here(engine: Engine, owner: Owner) -> None:
    """Does what is left to do where no loop goes on. It is waited for, but not for ever."""
    futures.wait([_end_there(engine, owner)], _PATIENCE)


def _end_there(engine: Engine, owner: Owner) -> "Future[None]":
    """The same in a thread of its own."""
    woken, over = threading.Event(), Future[None]()
    owner.wake = woken.set

    def end() -> None:
        _work(engine, _never, owner, woken)
        if engine.leave(owner):
            engine.finish()
        over.set_result(None)

    try:
        in_background(end)
    except RuntimeError:  # the interpreter ends, or there can be no more threads
        end()
    return over


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
                _send(engine, send, owner, work)
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


def _send(engine: Engine, send: AsyncTransport, owner: Owner, work: Send) -> None:
    """One send, in a task of its own. Exceptions are values here, since the core is to hear of them."""
    loop = asyncio.get_running_loop()

    async def exchange() -> Any:
        if engine.asks_before_sends:
            begun: Future[bool] = Future()
            begun.set_running_or_notify_cancel()  # a task that is cancelled does not cancel it
            in_background(lambda: begun.set_result(engine.begin(owner, work)))
            is_begun = await asyncio.wrap_future(begun)
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
