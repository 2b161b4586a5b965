"""What a task does, from the start of a command to its result. It is imported by the first client for tasks, and asyncio with it."""

import asyncio
from collections.abc import Coroutine
from threading import get_ident
from typing import Any

from . import _run
from ._engine import Begin, Engine, explain
from ._http import Failed
from ._http._base import AsyncTransport
from ._store import SURE
from ._threads import PATIENCE, Threads, in_background
from ._waiting import Bell, Later, wait_for
from ._work import Ask, Done, Owner, Send, Taken, Wait


class Disk(Threads):
    """Threads that wait for the disk in place of an event loop."""

    def __init__(self) -> None:
        super().__init__(4)
        self.ending: set[asyncio.Task[Any]] = set()
        """Commands that were given up, and what is left to do of them."""

    def run(self, engine: Engine, send: AsyncTransport, operation: str, begin: Begin) -> Coroutine[Any, Any, Taken | None]:
        """Runs a command in the task that awaits this, until it has ended. A task that is cancelled cancels its command."""
        return _run_async(engine, send, self, operation, begin)


async def waited(later: Later[Any], seconds: float) -> None:
    """Waits until something is known, for so many seconds at most."""
    loop, known = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(known.set)
        except RuntimeError:  # the loop is closed, and nobody waits
            return

    later.then(tell)
    alarm = loop.call_later(seconds, known.set)
    try:
        await known.wait()
    finally:
        alarm.cancel()


async def _run_async(engine: Engine, send: AsyncTransport, disk: Disk, operation: str, begin: Begin) -> Taken | None:
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake() -> None:
        try:
            if owner.thread == get_ident():  # a loop that is woken from its own thread need not be interrupted
                woken.set()
            else:
                loop.call_soon_threadsafe(woken.set)
        except RuntimeError:  # the loop is closed, and nobody waits
            return

    owner = Owner(wake)
    engine.check(operation)
    try:
        engine.enter(owner, operation, begin)
        taken = await _work(engine, send, disk, owner, woken)
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
        await asyncio.wait([ending], timeout=PATIENCE)
        ending.cancel()  # a store that has not answered by now is waited for by a thread
        explain(operation, owner, why)
        raise
    _leave(engine, owner)
    return taken


async def _end(engine: Engine, send: AsyncTransport, disk: Disk, owner: Owner, woken: asyncio.Event) -> None:
    """What is left to do of a command that was given up. The loop need not wait for it, and may end meanwhile."""
    try:
        await _work(engine, send, disk, owner, woken)
    except GeneratorExit:
        _end_here(engine, owner)
        raise
    except BaseException:  # the loop itself ends, and waits for all of these at once
        await waited(_end_there(engine, owner), PATIENCE)
        raise
    _leave(engine, owner)


def _leave(engine: Engine, owner: Owner) -> None:
    if engine.leave(owner):
        engine.finish()


def _end_here(engine: Engine, owner: Owner) -> None:
    """Does what is left to do where no loop goes on. It is waited for, but not for ever."""
    wait_for(_end_there(engine, owner), PATIENCE)


def _end_there(engine: Engine, owner: Owner) -> Later[None]:
    """The same in a thread of its own."""
    bell, over = Bell(), Later[None]()
    owner.wake = bell.ring

    def end() -> None:
        try:
            _run.work(engine, _never, owner, bell)
        finally:
            _leave(engine, owner)
            over.tell(None)

    try:
        in_background(end)
    except RuntimeError:  # here nothing would limit it, so it is left to others
        _leave(engine, owner)
        over.tell(None)
    return over


def _never(request: object) -> Any:
    raise Failed("aborted", "never")


async def _work(engine: Engine, send: AsyncTransport, disk: Disk, owner: Owner, woken: asyncio.Event) -> Taken | None:
    loop = asyncio.get_running_loop()
    while True:
        woken.clear()
        match engine.turn(owner):
            case Ask() as work:
                try:
                    disk.submit(lambda work=work: engine.ask_store(owner, work))  # type: ignore[misc]
                except RuntimeError:
                    engine.no_thread(owner, work)
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


_exchanges: set["asyncio.Task[None]"] = set()
"""An event loop itself does not keep its tasks alive."""


def _send(engine: Engine, send: AsyncTransport, owner: Owner, work: Send) -> None:
    """One send, in a task of its own. Exceptions are values here, since the core is to hear of them."""
    loop = asyncio.get_running_loop()
    owner.sending.pop(work.step, None)  # nothing interrupts a task between here and the send
    vouched = engine.vouched()
    if vouched is SURE and not engine.begin(owner, work, SURE):
        return

    async def exchange() -> None:
        if vouched is not SURE:
            await waited(vouched, work.patience())
            if not engine.begin(owner, work, vouched):
                return
        try:
            answer: object = await send(work.request)
        except Exception as error:
            answer = error
        engine.answered(work, answer)

    def done(task: "asyncio.Task[None]") -> None:
        _exchanges.discard(task)
        if task.cancelled():
            engine.answered(work, Failed("aborted", "maybe" if work.is_begun else "never"))
        elif (why := task.exception()) is not None:
            engine.answered(work, why)

    task = loop.create_task(exchange())
    _exchanges.add(task)
    task.add_done_callback(done)
    work.request.on_abort(lambda: loop.call_soon_threadsafe(task.cancel))
