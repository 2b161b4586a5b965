"""The work of a thread, from the start of a command to its result. That of a task is in `_tasks`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._answers import Span, end_span, explain
from ._http._base import Transport
from ._waiting import PATIENCE, Bell, wait_for
from ._work import Ask, Begin, Done, Owner, Send, Taken, Wait

if TYPE_CHECKING:
    from ._engine import Engine


def run(engine: Engine, send: Transport, operation: str, begin: Begin) -> Taken | None:
    """Runs a command in this thread until it has ended. Without a command, does the remaining work."""
    bell = Bell()
    owner = Owner(bell.ring)
    engine.check(operation)
    try:
        engine.enter(owner, operation, begin)
        taken = work(engine, send, owner, bell)
        _leave(engine, owner)
        return taken
    except BaseException as why:
        if not engine.is_forked():
            try:
                engine.do_again(owner)
                engine.give_up(owner)
                work(engine, send, owner, bell)
                explain(operation, owner, why)
            finally:
                _leave(engine, owner)
        raise


def here() -> object:
    """Returns the thread that runs."""
    return threading.current_thread()


def carrier(send: Transport) -> Transport:
    """Returns the transport for pools, whose work goes on in another thread."""
    return send


def spanned(span: Span, work: Callable[[], Taken | None]) -> Taken | None:
    """Runs work inside of a span."""
    with span as failed:
        return end_span(failed, work())


def _leave(engine: Engine, owner: Owner) -> None:
    if engine.leave(owner):
        engine.finish()
        until_over(engine, PATIENCE)


def until_over(engine: Engine, seconds: float) -> None:
    """Waits until a closed client is finished, for at most that many seconds. A thread that works in it does not wait for itself."""
    if not engine.is_used_here() and not wait_for(engine.over, seconds):
        engine.say_not_over()


def work(engine: Engine, send: Transport, owner: Owner, bell: Bell) -> Taken | None:
    """Does all work until the owner's command has ended."""
    while True:
        bell.stop()
        match engine.turn(owner):
            case Ask() as ask:
                engine.asks.make(owner, ask)
            case Send() as one:
                vouched = engine.asks.vouched(one)
                if vouched is not None:
                    wait_for(vouched, one.patience())
                is_own = one.command == owner.command and owner.operation != "resume_all"
                if engine.begin(owner, one, vouched, is_here=is_own):
                    _send(engine, send, one, is_own)
                owner.sending.pop(one.step, None)
            case Wait(seconds):
                bell.wait(seconds)
            case Done():
                return owner.taken


def _send(engine: Engine, send: Transport, work: Send, is_own: bool) -> None:
    """Makes one send: in this thread, unless there may be other work meanwhile. Exceptions are values here, since the core needs them; an
    interrupt of this thread is not an exception of the send.
    """
    if not is_own:
        from ._http._thread import begin_in_thread

        try:
            return begin_in_thread(send, work.request, lambda answer: engine.answered(work, answer))
        except RuntimeError:  # there can be no more threads
            pass
    try:
        answer: object = send(work.request)
    except Exception as error:
        answer = error
    engine.answered(work, answer)
