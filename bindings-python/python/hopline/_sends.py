"""The sends of one client that were not answered yet, whether they were begun or not. The engine's lock is held around every call."""

from __future__ import annotations

from heapq import heappop, heappush
from time import monotonic_ns
from typing import Any

from . import _hopline
from ._http import Failed, Response, inflated, words_of
from ._told import FailureKind
from ._work import Send, now

_COMPRESSED = (b"\x1f\x8b", b"x")
"""How what gzip or deflate has made begins, and no JSON does."""
_GRACE_MS = 200
"""An HTTP client keeps the timeout by itself and can say whether anything was sent, so it may be first."""


class Sends:
    """What was given out to be sent, until the core has been told what came of it."""

    def __init__(self, core: _hopline.Client) -> None:
        self._core = core
        self.out: dict[int, Send] = {}
        """By their steps."""
        self._deadlines: list[tuple[int, int]] = []
        self.are_told = False
        """Whether somebody listens."""
        self.news: list[tuple[Send, int | None, FailureKind | None]] = []
        """Those that have begun, and those that are over, with the status or why there was none: to be told to whoever listens."""

    def wanted(self, sends: dict[int, Send]) -> dict[int, Send]:
        """Those that were not broken off meanwhile."""
        return {step: send for step, send in sends.items() if step in self.out}

    def begin(self, send: Send, is_sure: bool) -> bool:
        """Whether it is to be sent now. If it took too long to come to it, or the claims of its store may have ended, the core decides
        anew."""
        if send.is_begun or send.step not in self.out:
            return False
        _, at = now()
        if not is_sure or at > send.send_before:
            self._fail(send, "late")
            return False
        send.is_begun = True
        if self.are_told:
            send.begun_at = monotonic_ns()
            self.news.append((send, None, None))
        heappush(self._deadlines, (at + round(send.request.timeout * 1000) + _GRACE_MS, send.step))
        return True

    def lose(self) -> None:
        """Claims have ended: what has not begun is not sent, and the core decides anew."""
        for send in [send for send in self.out.values() if not send.is_begun and not send.is_never_late()]:
            self._fail(send, "late")

    def soonest(self, until: int | None) -> int | None:
        """When to look again: when the core wants to go on, or the next send has taken too long."""
        deadlines, out = self._deadlines, self.out
        while deadlines and deadlines[0][1] not in out:
            heappop(deadlines)
        if not deadlines:
            return until
        end = deadlines[0][0]
        return end if until is None or end < until else until

    def expire(self, at: tuple[int, int]) -> None:
        """Ends the sends that took too long, whatever the HTTP client makes of its timeout."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= at[1]:
            self._end(deadlines[0][1], "timeout")
            heappop(deadlines)

    def break_off(self, step: int) -> None:
        """Ends a send that nobody waits for any more."""
        self._end(step, "aborted")

    def _end(self, step: int, kind: FailureKind) -> None:
        """Ends a send from here. Whatever comes of it later is not heard."""
        if (send := self.out.get(step)) is not None:
            self._fail(send, kind)
            send.request.abort()

    def _fail(self, send: Send, kind: FailureKind) -> None:
        try:
            self._core.fail(send.step, kind, "maybe" if send.is_begun else "never", *now())
        except ValueError:  # the core was told before an interrupt
            pass
        if self.out.pop(send.step, None) is not None and send.begun_at and self.are_told:
            self.news.append((send, None, kind))

    def answered(self, work: Send, answer: Any, notes: list[str]) -> bool:
        """Tells the core what came of a send: a response, an exception, or something that is neither. Whether it wanted to know."""
        if work.step not in self.out:
            return False
        self._tell(work, answer, notes)
        if self.out.pop(work.step, None) is not None and work.begun_at and self.are_told:
            failure = None if isinstance(answer, Response) else answer.kind if isinstance(answer, Failed) else "other"
            self.news.append((work, answer.status if isinstance(answer, Response) else None, failure))
        return True

    def _tell(self, work: Send, answer: Any, notes: list[str]) -> None:
        kind, sent = "other", "maybe" if work.is_begun else "never"
        if isinstance(answer, Response):
            try:
                return self._core.respond(work.step, answer.status, answer.headers, answer.body, answer.truncated, *now())
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                if work.step not in self.out:  # it was broken off as it was read
                    return
                notes.append(f"the transport's response could not be read: {words_of(error, work.request)}")
        elif isinstance(answer, Failed):
            kind, sent = answer.kind, answer.sent
            if answer.why is not None:
                notes.append(answer.why)
        else:
            notes.append(f"the transport returned `{type(answer).__name__}` instead of a hopline.Response")
        try:
            self._core.fail(work.step, kind, sent, *now())
        except (TypeError, ValueError):
            self._fail(work, "other")


def plain(work: Send, answer: Any) -> Any:
    """What came of a send, of which nothing is the caller's own any more: neither headers that are read with every look, nor an exception that
    speaks for itself. That of another import of this package counts, too."""
    try:
        if _is_a("Response", answer):
            body = answer.body if isinstance(answer.body, bytes) else bytes(memoryview(answer.body))
            headers, truncated = answer.headers, answer.truncated
            if body.startswith(_COMPRESSED):
                body, is_cut = inflated(body, work.request.max_body)
                truncated = truncated or is_cut
            if type(headers) is not dict:
                headers = list(headers.items() if hasattr(headers, "items") else headers)
            return Response(status=answer.status, headers=headers, body=body, truncated=truncated)
        if _is_a("Failed", answer):
            return answer if isinstance(answer, Failed) else Failed(answer.kind, answer.sent, answer.why)
    except Exception as error:
        return Failed("other", "maybe", f"the transport's response could not be read: {words_of(error, work.request)}")
    if isinstance(answer, BaseException):
        return Failed("other", "maybe" if work.is_begun else "never", f"the transport raised {words_of(answer, work.request)}")
    return answer


def _is_a(name: str, answer: object) -> bool:
    # In no generator, which would swallow an interrupt.
    for base in type(answer).__mro__:
        if base.__name__ == name and base.__module__ == "hopline._http._base":
            return True
    return False
