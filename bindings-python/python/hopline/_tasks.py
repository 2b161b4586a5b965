"""The work of a task, from the start of a command to its result. The first client for tasks imports it, and asyncio with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError
from threading import get_ident
from typing import Any

from . import _hopline, _run
from ._answers import Span, end_span, explain
from ._asks import was_sure
from ._engine import Engine
from ._errors import misuse
from ._hopline import REPEATABLE
from ._http import AsyncTransport, Failed, Request, Response, Transport
from ._sends import lost, tell
from ._threads import in_background
from ._told import Misuse
from ._waiting import PATIENCE, Later, wait_for
from ._work import Begin, Owner, Taken, process

_WAITING = {"open_session", "reconcile", "wait_order", "wait_session"}
"""Errors that are about more than one request, and may send each of them again."""


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
    if engine.is_shut or process.id != engine.pid:
        try:
            engine.check(operation)
        except Misuse:
            await asyncio.sleep(0)  # as below
            raise
    if not engine.is_heard:
        engine.hear()
    owner = Owner(operation, operation in REPEATABLE or operation in _WAITING, get_ident(), loop)
    try:
        taken = await _work(engine, send, owner, begin)
    except _hopline.Closed:  # meanwhile
        engine.check(operation)
        raise
    except GeneratorExit:  # the coroutine was dropped, and may wait for nothing any more
        _end_here(engine, owner)
        raise
    except BaseException as why:
        if engine.is_forked():
            raise
        if owner.is_in:
            if not isinstance(why, asyncio.CancelledError):
                engine.core.take_back(owner)
            engine.core.give_up(owner)
            ending = _started(engine, _end(engine, send, owner))
            await asyncio.wait([ending], timeout=PATIENCE)
            ending.cancel()  # a thread waits for a store that has not answered by now
        explain(operation, getattr(owner, "taken", None), why)
        raise
    _leave(engine, owner, True)
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


def _started(engine: Engine, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.get_running_loop().create_task(work)
    engine.tasks.add(task)
    task.add_done_callback(engine.tasks.discard)
    return task


async def _end(engine: Engine, send: AsyncTransport, owner: Owner) -> None:
    """Does the remaining work of a cancelled command. The loop need not wait for it, and may end meanwhile."""
    try:
        await _work(engine, send, owner)
    except GeneratorExit:
        _end_here(engine, owner)
        raise
    except BaseException:  # the loop itself ends, and waits for all of these at once
        await _waited(_end_there(engine, owner), PATIENCE)
        raise
    _leave(engine, owner)


def _leave(engine: Engine, owner: Owner, has_heard: bool = False) -> None:
    if engine.core.leave(owner, has_heard):
        engine.finish()


def _end_here(engine: Engine, owner: Owner) -> None:
    """Does the remaining work of an owner that gives up where no loop runs. The caller waits for it, but not forever."""
    if engine.is_forked() or not owner.is_in:  # another process has it, or its loop was closed and nothing remains
        return
    engine.core.give_up(owner)
    wait_for(_end_there(engine, owner), PATIENCE)


def _end_there(engine: Engine, owner: Owner) -> Later[None]:
    """Does the remaining work in a thread of its own."""
    over = Later[None]()

    def end() -> None:
        try:
            _run.work(engine, _never, owner)
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


async def _work(engine: Engine, send: AsyncTransport, owner: Owner, begin: Begin | None = None) -> Taken | None:
    core, bell = engine.core, None
    turn = None if begin is None else begin(core, owner)
    while True:
        if type(turn) is not tuple:
            turn = core.turn(owner)
        if process.id != engine.pid:
            engine.check("client")
        match turn:
            case ("send", step, request, True, None):
                turn = await _send(core, send, owner, step, request)
                continue
            case ("send", step, request, _, patience):
                _send_meanwhile(engine, send, owner, step, request, patience)
            case ("ask", step, call):
                engine.asks.make_meanwhile(step, call)
            case ("wait", seconds):
                if not engine.gives_dropped_back():
                    if bell is None:
                        bell = _Bell(asyncio.get_running_loop())
                        owner.listen(bell.ring)
                    await bell.wait(seconds)
                    bell.stop()
            case _:
                return engine.taken(owner)
        turn = None


async def _send(core: _hopline.Client, send: AsyncTransport, owner: Owner, step: int, request: Request) -> _hopline.Turn | None:
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

    request.on_abort(lambda: loop.call_soon_threadsafe(break_off))
    owner.is_sending = True
    try:
        answer: object = await send(request)
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
    return tell(core, step, request, answer, owner)


def _send_meanwhile(engine: Engine, send: AsyncTransport, owner: Owner, step: int, request: Request, patience: float | None) -> None:
    """One send in a task of its own."""
    core, vouched = engine.core, None if patience is None else engine.asks.vouches()

    async def exchange() -> None:
        if patience is not None:
            if vouched is not None:
                await _waited(vouched, patience)
            if not core.begin_send(step, vouched is None or was_sure(vouched)):
                return
        try:
            answer: object = await send(request)
        except Exception as error:
            answer = error
        tell(core, step, request, answer)

    def done(task: asyncio.Task[None]) -> None:
        if task.cancelled():
            lost(core, step)
        elif (why := task.exception()) is not None:
            tell(core, step, request, why)

    loop, owner.is_sending = asyncio.get_running_loop(), True
    task = _started(engine, exchange())
    task.add_done_callback(done)
    request.on_abort(lambda: loop.call_soon_threadsafe(task.cancel))
