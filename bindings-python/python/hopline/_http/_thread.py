"""Blocking transports in threads of their own, so that a waiting caller can give up on time in any case."""

import contextvars
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._threads import in_warm_thread
from .._waiting import Bell
from ._base import Failed, Request, Response, Transport

if TYPE_CHECKING:
    import asyncio


def begin_in_thread(send: Transport, request: Request, done: Callable[[object], object]) -> None:
    """Sends in another thread, and passes on the outcome: the returned value or the exception."""
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer: object = context.run(send, request)
        except BaseException as error:  # the exception belongs to the caller that waits
            answer = error
        done(answer)

    in_warm_thread(work)


def in_thread(send: Transport) -> Transport:
    """Wraps a callable for `http=` so that it sends in a thread of its own. A call then ends on time, and by Ctrl-C, even if the callable
    ignores `request.timeout`; it takes somewhat longer.
    """

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
    """The wrapped callable for event loops."""

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
    """Returns the value of a call, or raises its exception; an exception that ended the thread ends nothing else."""
    if isinstance(answer, Exception):
        raise answer
    if answer is None or isinstance(answer, BaseException):
        raise Failed("aborted", "maybe")
    return answer  # type: ignore[return-value]  # the caller checks it
