"""Blocking transports in threads of their own, so that whoever waits can give up on time whatever they do."""

import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._threads import in_warm_thread
from .._waiting import Bell
from ._base import Failed, Request, Response, Transport

if TYPE_CHECKING:
    import asyncio


def begin_in_thread(send: Transport, request: Request, done: Callable[[object], None]) -> None:
    """Sends in another thread, and tells what came of it: what was returned or raised."""
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer: object = context.run(send, request)
        except BaseException as error:  # it belongs to whoever waits
            answer = error
        done(answer)

    in_warm_thread(work)


def in_thread(send: Transport) -> Transport:
    """Makes a callable for `http=` one that sends in a thread of its own. A call then ends on time, and by Ctrl-C, whatever the callable
    does about `request.timeout`; it takes somewhat longer."""

    def sent(request: Request) -> Response:
        bell = Bell()
        answers: list[object] = []

        def done(answer: object) -> None:
            answers.append(answer)
            bell.ring()

        request.on_abort(bell.ring)
        try:
            begin_in_thread(send, request, done)
        except RuntimeError:  # there can be no more threads
            raise Failed("other", "never") from None
        bell.wait()
        return _answer(answers[0] if answers else None)

    return sent


class InTask:
    """The same as event loops want it."""

    def __init__(self, blocking: Transport) -> None:
        self.blocking = blocking

    async def __call__(self, request: Request) -> Response:
        import asyncio

        loop = asyncio.get_running_loop()
        answered: asyncio.Future[object] = loop.create_future()

        def done(answer: object) -> None:
            try:
                loop.call_soon_threadsafe(_settle, answered, answer)
            except RuntimeError:  # the loop is closed, and nobody waits
                return

        try:
            begin_in_thread(self.blocking, request, done)
        except RuntimeError:  # there can be no more threads
            raise Failed("other", "never") from None
        return _answer(await answered)


def _settle(answered: "asyncio.Future[object]", answer: object) -> None:
    if not answered.done():
        answered.set_result(answer)


def _answer(answer: object) -> Response:
    """What was returned. What was raised is raised; what ended the thread ends nothing else."""
    if isinstance(answer, Exception):
        raise answer
    if answer is None or isinstance(answer, BaseException):
        raise Failed("aborted", "maybe")
    return answer  # type: ignore[return-value]  # whoever asks sees whether it is one
