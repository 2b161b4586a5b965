"""The work of a thread, from the start of a command to its result. That of a task is in `_tasks`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING

from ._answers import Span, end_span, explain
from ._asks import is_sure
from ._hopline import Closed
from ._http._base import Transport
from ._sends import tell
from ._waiting import PATIENCE, Bell, wait_for
from ._work import Begin, Owner, Taken, process

if TYPE_CHECKING:
    from ._engine import Engine
    from ._hopline import Turn
    from ._http._base import Request


def run(engine: Engine, send: Transport, operation: str, begin: Begin) -> Taken | None:
    """Runs a command in this thread until it has ended. Without a command, does the remaining work."""
    if engine.is_shut or process.id != engine.pid:
        engine.check(operation)
    if not engine.is_heard:
        engine.hear()
    owner = Owner(operation, operation != "resume_all", get_ident())
    try:
        taken = work(engine, send, owner, begin)
        if engine.core.leave(owner, True):
            _finish(engine)
        return taken
    except Closed:  # meanwhile
        engine.check(operation)
        raise
    except BaseException as why:
        if engine.is_forked():
            raise
        try:
            if owner.is_in:
                engine.core.take_back(owner)
                engine.core.give_up(owner)
                work(engine, send, owner)
            explain(operation, engine.taken(owner), why)
        finally:
            leave(engine, owner)
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


def leave(engine: Engine, owner: Owner) -> None:
    """Ends the presence of an owner."""
    if engine.core.leave(owner) or engine.core.is_to_finish():
        _finish(engine)


def _finish(engine: Engine) -> None:
    engine.finish()
    until_over(engine, PATIENCE)


def until_over(engine: Engine, seconds: float) -> None:
    """Waits until a closed client is finished, for at most that many seconds. A thread that works in it does not wait for itself."""
    if not engine.is_used_here() and not wait_for(engine.over, seconds):
        engine.say_not_over()


def work(engine: Engine, send: Transport, owner: Owner, begin: Begin | None = None) -> Taken | None:
    """Does all work until the owner's command has ended."""
    core, bell = engine.core, None
    turn = None if begin is None else begin(core, owner)
    if type(turn) is not tuple:
        turn = core.turn(owner)
    while True:
        if process.id != engine.pid:
            engine.check("client")
        match turn:
            case ("send", step, request, is_here, patience):
                turn = None
                if patience is None or core.begin_send(step, is_sure(engine.asks.vouches(), patience), owner if is_here else None):
                    owner.is_sending = True
                    turn = _sent(engine, send, owner, step, request, is_here)
            case ("ask", step, call):
                turn = engine.asks.make(step, call, owner, not owner.gave_up)
            case ("wait", seconds):
                turn = None
                if not engine.gives_dropped_back():
                    if bell is None:
                        bell = Bell()
                        owner.listen(bell.ring)
                    bell.wait(seconds)
            case ("ended", _):
                engine.taken(owner)
                turn = core.heard(owner)
            case _:
                return engine.taken(owner)
        if turn is None:
            turn = core.turn(owner)


def _sent(engine: Engine, send: Transport, owner: Owner, step: int, request: Request, is_here: bool) -> Turn | None:
    """Makes one send: in this thread, unless there may be other work meanwhile. Exceptions are values here, since the core needs them; an
    interrupt of this thread is not an exception of the send.
    """
    core = engine.core
    if not is_here:
        from ._http._thread import begin_in_thread

        try:
            begin_in_thread(send, request, lambda answer: tell(core, step, request, answer))
            return None
        except RuntimeError:  # there can be no more threads
            pass
    try:
        answer: object = send(request)
    except Exception as error:
        answer = error
    return tell(core, step, request, answer, owner)
