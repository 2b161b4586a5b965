"""The drivers: what a thread does, and what a task does, from the start of a command to its result."""

import asyncio
import concurrent.futures
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

from . import _hopline
from ._engine import Engine
from ._http import Failed
from ._http._base import Transport
from ._http._choose import AsyncTransport, in_thread
from ._work import Owner, Save, Send, Taken, Wait

Begin = Callable[[_hopline.Client], int]


def run(engine: Engine, send: Transport, operation: str, begin: Begin | None, intent: str | None = None) -> Taken | None:
    """Runs a command in this thread until it has ended. Without one, does what is left to do."""
    engine.check(operation)
    woken = threading.Event()
    owner = Owner(woken.set, intent)
    try:
        engine.enter(owner, operation, begin)
        while True:
            woken.clear()
            match engine.turn(owner):
                case Save() as work:
                    engine.kept(owner, work, engine.records.keep(work))
                case Send() as work:
                    engine.answered(owner, work, _exchange(engine, send, owner, work, woken))
                case Wait() if begin is None or owner.taken is not None:
                    return owner.taken
                case Wait(seconds):
                    woken.wait(seconds)
    except BaseException as why:
        engine.abandon(owner, why)
        raise
    finally:
        engine.leave(owner)


def _exchange(engine: Engine, send: Transport, owner: Owner, work: Send, woken: threading.Event) -> Any:
    """One send, for no longer than it may take, whatever the HTTP client makes of its timeout."""
    if engine.is_late(work):
        return Failed("late", "never")
    came: list[Any] = []

    def done(answer: Any) -> None:
        came.append(answer)
        woken.set()

    context = contextvars.copy_context()
    in_thread(lambda request: context.run(send, request), work.request, done)
    end = time.monotonic() + work.request.timeout
    try:
        while not came:
            left = end - time.monotonic()
            if owner.aborted or left <= 0:
                work.request.abort()
                return Failed("aborted" if owner.aborted else "timeout", "maybe")
            woken.wait(left)
            woken.clear()
    except BaseException:
        work.request.abort()
        raise
    return came[0]


class Disk:
    """Threads that keep the records of an event loop."""

    def __init__(self) -> None:
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None

    def submit(self, engine: Engine, work: Save) -> "concurrent.futures.Future[OSError | None]":
        """Keeps a record meanwhile."""
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(4, "hopline-store")
        return self._pool.submit(engine.records.keep, work)

    def close(self) -> None:
        """Lets the threads end."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


async def run_async(
    engine: Engine, send: AsyncTransport, disk: Disk, operation: str, begin: Begin | None, intent: str | None = None
) -> Taken | None:
    """Runs a command in this task until it has ended. A task that is cancelled cancels its command."""
    engine.check(operation)
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()
    exchange: asyncio.Task[Any] | None = None

    def wake_here() -> None:
        woken.set()
        if owner.aborted and exchange is not None:
            exchange.cancel()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(wake_here)
        except RuntimeError:  # the loop is closed, and nobody waits
            return

    owner = Owner(wake, intent)
    try:
        engine.enter(owner, operation, begin)
        while True:
            woken.clear()
            match engine.turn(owner):
                case Save() as work:
                    engine.kept(owner, work, await _keep(engine, disk, work))
                case Send() as work if engine.is_late(work):
                    engine.answered(owner, work, Failed("late", "never"))
                case Send() as work:
                    exchange = loop.create_task(_send(send, work))
                    engine.answered(owner, work, await _outcome(owner, exchange))
                case Wait() if begin is None or owner.taken is not None:
                    return owner.taken
                case Wait(None):
                    await woken.wait()
                case Wait(seconds):
                    alarm = loop.call_later(seconds or 0, woken.set)
                    try:
                        await woken.wait()
                    finally:
                        alarm.cancel()
    except BaseException as why:
        engine.abandon(owner, why)
        raise
    finally:
        engine.leave(owner)


async def _outcome(owner: Owner, exchange: "asyncio.Task[Any]") -> Any:
    try:
        return await exchange
    except asyncio.CancelledError:
        # Cancelled was the exchange, by `close`, or this task, which then is to end.
        if owner.aborted and not _is_cancelling():
            return Failed("aborted", "maybe")
        exchange.cancel()
        raise


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _send(send: AsyncTransport, work: Send) -> Any:
    """One send, for no longer than it may take. Exceptions are values here, since the core is to hear of them."""
    deadline = asyncio.timeout(work.request.timeout)
    try:
        async with deadline:
            return await send(work.request)
    except Exception as error:
        return Failed("timeout", "maybe") if deadline.expired() else error


async def _keep(engine: Engine, disk: Disk, work: Save) -> OSError | None:
    if not engine.records.shelf.blocking:
        return engine.records.keep(work)
    keeping = disk.submit(engine, work)
    try:
        return await asyncio.wrap_future(keeping)
    except asyncio.CancelledError:
        # Two saves of one record must never overlap, and `abandon` will keep it once more.
        concurrent.futures.wait([keeping])
        raise
