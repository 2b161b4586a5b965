"""The work of a task, from the start of a command to its result. The first client for tasks imports it, and asyncio with it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from threading import get_ident
from typing import Any

from . import _run
from ._answers import Span, end_span, explain
from ._engine import Engine
from ._errors import misuse
from ._hopline import REPEATABLE
from ._http import AsyncTransport, Failed, Request, Response, Transport
from ._threads import in_background
from ._told import Misuse
from ._waiting import PATIENCE, Bell, Later, wait_for
from ._work import Ask, Begin, Done, Owner, Send, Taken, Wait

_WAITING = {"open_session", "reconcile", "wait_order", "wait_session"}
"""Errors that are about more than one request, and may send each of them again."""
_running: set["asyncio.Task[None]"] = set()
"""The tasks of this module. An event loop itself does not keep its tasks alive."""


class _Bell:
    """A bell for a task, which may ring in any thread."""

    __slots__ = ("_loop", "_rings", "_thread", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._thread, self._rings = loop, get_ident(), False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        try:
            if self._thread == get_ident():  # a loop that is woken from its own thread need not be interrupted
                self._wake()
            else:
                self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop is closed, and no task waits
            return

    def stop(self) -> None:
        self._rings = False

    async def wait(self, seconds: float | None) -> None:
        if self._rings:
            return
        self._waiting = self._loop.create_future()
        alarm = None if seconds is None else self._loop.call_later(seconds, self._wake)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if alarm is not None:
                alarm.cancel()

    def _wake(self) -> None:
        self._rings = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


async def until_over(engine: Engine, seconds: float) -> None:
    """Waits until a closed client is finished, for at most that many seconds."""
    await _waited(engine.over, seconds)
    if not engine.over.is_known:
        engine.say_not_over()


async def _waited(later: Later[Any], seconds: float) -> None:
    bell = _Bell(asyncio.get_running_loop())
    later.then(bell.ring)
    await bell.wait(seconds)


async def run(engine: Engine, send: AsyncTransport, operation: str, begin: Begin) -> Taken | None:
    """Runs a command in this task until it has ended. Without a command, does the remaining work. A task that is cancelled cancels its
    command.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        misuse(operation, "clients for tasks run on asyncio; under trio, call the client for threads in `trio.to_thread.run_sync`")
    bell = _Bell(loop)
    owner = Owner(bell.ring)
    owner.sends_itself = operation in REPEATABLE or operation in _WAITING
    try:
        engine.check(operation)
    except Misuse:
        await asyncio.sleep(0)  # as below
        raise
    try:
        engine.enter(owner, operation, begin)
        taken = await _work(engine, send, owner, bell)
    except GeneratorExit:  # the coroutine was dropped, and may wait for nothing any more
        engine.give_up(owner)
        _end_here(engine, owner)
        raise
    except BaseException as why:
        if engine.is_forked():
            raise
        engine.give_up(owner)
        ending = _started(_end(engine, send, owner, bell))
        await asyncio.wait([ending], timeout=PATIENCE)
        ending.cancel()  # a thread waits for a store that has not answered by now
        explain(operation, owner, why)
        raise
    _leave(engine, owner)
    if operation == "acquire" and taken is not None and taken.failure is not None:
        await asyncio.sleep(0)  # a caller that tries again at once, in a loop, would let no other task run
    return taken


def here() -> object | None:
    """Returns the task that runs, if one does in this thread."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def carrier(send: AsyncTransport) -> Transport:
    """The transport for pools, whose work goes on in another thread: each request is a task of the event loop that opened the pool."""
    loop = asyncio.get_running_loop()

    def carried(request: Request) -> Response:
        sending = _sent(send, request)
        try:
            running = asyncio.run_coroutine_threadsafe(sending, loop)
        except RuntimeError:  # the loop is closed
            sending.close()
            raise Failed("aborted", "never") from None
        request.on_abort(running.cancel)
        try:
            return running.result()
        except CancelledError:
            raise Failed("aborted", "maybe") from None

    return carried


async def _sent(send: AsyncTransport, request: Request) -> Response:
    return await send(request)


async def spanned(span: Span, work: Callable[[], Awaitable[Taken | None]]) -> Taken | None:
    """Runs work inside of a span."""
    with span as failed:
        return end_span(failed, await work())


def _started(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


async def _end(engine: Engine, send: AsyncTransport, owner: Owner, bell: _Bell) -> None:
    """Does the remaining work of a cancelled command. The loop need not wait for it, and may end meanwhile."""
    try:
        await _work(engine, send, owner, bell)
    except GeneratorExit:
        _end_here(engine, owner)
        raise
    except BaseException:  # the loop itself ends, and waits for all of these at once
        await _waited(_end_there(engine, owner), PATIENCE)
        raise
    _leave(engine, owner)


def _leave(engine: Engine, owner: Owner) -> None:
    if engine.leave(owner):
        engine.finish()


def _end_here(engine: Engine, owner: Owner) -> None:
    """Does the remaining work where no loop runs. The caller waits for it, but not forever."""
    wait_for(_end_there(engine, owner), PATIENCE)


def _end_there(engine: Engine, owner: Owner) -> Later[None]:
    """Does the remaining work in a thread of its own."""
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
    except RuntimeError:  # nothing would limit it here, so it is left to others
        _leave(engine, owner)
        over.tell(None)
    return over


def _never(request: object) -> Any:
    raise Failed("aborted", "never")


async def _work(engine: Engine, send: AsyncTransport, owner: Owner, bell: _Bell) -> Taken | None:
    while True:
        bell.stop()
        match engine.turn(owner):
            case Ask() as ask:
                engine.asks.make_meanwhile(owner, ask)
            case Send() as one:
                owner.sending.pop(one.step, None)  # nothing interrupts a task between here and the send
                vouched = engine.asks.vouched(one)
                if vouched is not None or one.command != owner.command or not owner.sends_itself:
                    _send_meanwhile(engine, send, owner, one, vouched)
                elif engine.begin(owner, one, None, is_here=True):
                    await _send(engine, send, one)
            case Wait(seconds):
                await bell.wait(seconds)
            case Done():
                return owner.taken


async def _send(engine: Engine, send: AsyncTransport, work: Send) -> None:
    """Makes one send in the task of its caller: a task of its own costs as much as all the rest. If the caller is cancelled the send breaks
    off, so it must be one that may be sent again for other waiters. Exceptions are values here, since the core needs them.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # asyncio runs coroutines in tasks only
    before, is_out, is_broken = task.cancelling(), True, False

    def break_off() -> None:
        nonlocal is_broken
        if is_out:
            is_broken = True
            task.cancel()

    work.request.on_abort(lambda: loop.call_soon_threadsafe(break_off))
    try:
        answer: object = await send(work.request)
    except asyncio.CancelledError as error:
        if not is_broken or task.cancelling() > before + 1:  # the caller itself is cancelled
            raise
        answer = error
    except Exception as error:
        answer = error
    finally:
        is_out = False
        if is_broken:
            task.uncancel()
    engine.answered(work, answer)


def _send_meanwhile(engine: Engine, send: AsyncTransport, owner: Owner, work: Send, vouched: Later[bool] | None) -> None:
    """One send in a task of its own."""
    if vouched is None and not engine.begin(owner, work, None):
        return

    async def exchange() -> None:
        if vouched is not None:
            await _waited(vouched, work.patience())
            if not engine.begin(owner, work, vouched):
                return
        try:
            answer: object = await send(work.request)
        except Exception as error:
            answer = error
        engine.answered(work, answer)

    def done(task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            engine.answered(work, Failed("aborted", "maybe" if work.is_begun else "never"))
        elif (why := task.exception()) is not None:
            engine.answered(work, why)

    loop, task = asyncio.get_running_loop(), _started(exchange())
    task.add_done_callback(done)
    work.request.on_abort(lambda: loop.call_soon_threadsafe(task.cancel))
