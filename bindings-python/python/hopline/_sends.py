"""The sends of one client that were not answered yet, whether they were begun or not. The engine's lock is held around every call."""

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Any

from . import _hopline
from ._http import Failed, Request, Response
from ._http._base import USER_AGENT, named
from ._work import Send, now

_GRACE_MS = 200
"""An HTTP client keeps the timeout by itself and can say whether anything was sent, so it may be first."""


class Sends:
    """What was given out to be sent, until the core has been told what came of it."""

    def __init__(self, core: _hopline.Client) -> None:
        self._core = core
        self._out: dict[int, Send] = {}
        self._deadlines: list[tuple[int, int]] = []

    def add(self, step: tuple[Any, ...]) -> Send:
        """A send that the core gave out."""
        _, step_id, command, method, url, headers, body, timeout, send_before, max_body = step
        sent = {"user-agent": USER_AGENT, **dict(headers)}
        request = Request(method=method, url=url, headers=sent, body=body, timeout=timeout / 1000, max_body=max_body)
        send = self._out[step_id] = Send(step_id, command, request, send_before)
        return send

    def wanted(self, sends: Iterable[Send]) -> list[Send]:
        """Those that were not broken off meanwhile."""
        return [send for send in sends if send.step in self._out]

    def next(self, *queues: deque[Send]) -> Send | None:
        """The first of the queues that was not broken off meanwhile."""
        for queue in queues:
            while queue:
                send = queue.popleft()
                if send.step in self._out:
                    return send
        return None

    def begin(self, send: Send, is_sure: bool) -> bool:
        """Whether it is to be sent now. If it took too long to come to it, or the claims of its store may have ended, the core decides
        anew."""
        if send.is_begun or send.step not in self._out:
            return False
        at = now()
        if not is_sure or at[1] > send.send_before:
            del self._out[send.step]
            self._core.fail(send.step, "late", "never", *at)
            return False
        send.is_begun = True
        heapq.heappush(self._deadlines, (at[1] + round(send.request.timeout * 1000) + _GRACE_MS, send.step))
        return True

    def lose(self) -> None:
        """Claims have ended: what has not begun is not sent, and the core decides anew."""
        for step in [step for step, send in self._out.items() if not send.is_begun]:
            del self._out[step]
            self._core.fail(step, "late", "never", *now())

    def soonest(self, until: int | None) -> int | None:
        """When to look again: when the core wants to go on, or the next send has taken too long."""
        while self._deadlines and self._deadlines[0][1] not in self._out:
            heapq.heappop(self._deadlines)
        if not self._deadlines:
            return until
        end = self._deadlines[0][0]
        return end if until is None else min(end, until)

    def expire(self) -> None:
        """Ends the sends that took too long, whatever the HTTP client makes of its timeout."""
        while self._deadlines and self._deadlines[0][0] <= now()[1]:
            self._end(heapq.heappop(self._deadlines)[1], "timeout")

    def break_off(self, step: int) -> None:
        """Ends a send that nobody waits for any more."""
        self._end(step, "aborted")

    def _end(self, step: int, kind: str) -> None:
        """Ends a send from here. Whatever comes of it later is not heard."""
        if (send := self._out.pop(step, None)) is not None:
            self._core.fail(step, kind, "maybe" if send.is_begun else "never", *now())
            send.request.abort()

    def answered(self, work: Send, answer: Any, notes: list[str]) -> bool:
        """Tells the core what came of a send: a response, an exception, or something that is neither. Whether it wanted to know."""
        if self._out.pop(work.step, None) is None:
            return False
        failure = answer if isinstance(answer, Failed) else None
        if isinstance(answer, Response):
            try:
                self._core.respond(work.step, answer.status, named(answer.headers), bytes(answer.body), answer.truncated, *now())
                return True
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                notes.append(f"the transport's response could not be read: {type(error).__name__}")
        elif isinstance(answer, BaseException) and failure is None:
            notes.append(f"the transport raised {type(answer).__name__}, whose text is left out since it may hold secrets")
        elif failure is None:
            notes.append(f"the transport returned `{type(answer).__name__}` instead of a hopline.Response")
        elif failure.why is not None:
            notes.append(failure.why)
        kind, sent = (failure.kind, failure.sent) if failure else ("other", "maybe" if work.is_begun else "never")
        try:
            self._core.fail(work.step, kind, sent, *now())
        except (TypeError, ValueError):
            self._core.fail(work.step, "other", "maybe", *now())
        return True
