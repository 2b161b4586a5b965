"""The sends of one client that were not answered yet, begun or not. The engine's lock is held around every call."""

from __future__ import annotations

from heapq import heappop, heappush
from time import monotonic_ns
from typing import Any

from . import _hopline
from ._http import Failed, Response, inflated, words_of
from ._told import FailureKind
from ._work import Send, now

_COMPRESSED = (b"\x1f\x8b", b"x")
"""The first bytes of gzip and deflate data, with which no JSON begins."""
_GRACE_MS = 200
"""An HTTP client keeps the timeout by itself and can report whether anything was sent, so it may be first."""


class Sends:
    """The sends that were given out, until the core has their outcome."""

    def __init__(self, core: _hopline.Client) -> None:
        self._core = core
        self.out: dict[int, Send] = {}
        """By their steps."""
        self._deadlines: list[tuple[int, int]] = []
        self.are_told = False
        """True if there is a listener."""
        self.news: list[tuple[Send, int | None, FailureKind | None]] = []
        """The sends that have begun, and those that are over, with the status or the failure: to be reported to listeners."""

    def wanted(self, sends: dict[int, Send]) -> dict[int, Send]:
        """Returns the sends that were not broken off meanwhile."""
        return {step: send for step, send in sends.items() if step in self.out}

    def begin(self, send: Send, is_sure: bool) -> bool:
        """Returns true if the send is to be made now. If it is late, or the claims of its store may have ended, the core decides anew."""
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
        """Takes the end of claims: a send that has not begun is not made, and the core decides anew."""
        for send in [send for send in self.out.values() if not send.is_begun and not send.is_never_late()]:
            self._fail(send, "late")

    def soonest(self, until: int | None) -> int | None:
        """The time of the next look: when the core wants to continue, or the next send has taken too long."""
        deadlines, out = self._deadlines, self.out
        while deadlines and deadlines[0][1] not in out:
            heappop(deadlines)
        if not deadlines:
            return until
        end = deadlines[0][0]
        return end if until is None or end < until else until

    def expire(self, at: tuple[int, int]) -> None:
        """Ends the sends that took too long, even if the HTTP client ignores its timeout."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= at[1]:
            self._end(deadlines[0][1], "timeout")
            heappop(deadlines)

    def break_off(self, step: int) -> None:
        """Ends a send that no caller waits for any more."""
        self._end(step, "aborted")

    def _end(self, step: int, kind: FailureKind) -> None:
        """Ends a send from here. A later outcome is ignored."""
        if (send := self.out.get(step)) is not None:
            self._fail(send, kind)
            send.request.abort()

    def _fail(self, send: Send, kind: FailureKind) -> None:
        try:
            self._core.fail(send.step, kind, "maybe" if send.is_begun else "never", *now())
        except ValueError:  # the core had it before an interrupt
            pass
        if self.out.pop(send.step, None) is not None and send.begun_at and self.are_told:
            self.news.append((send, None, kind))

    def answered(self, work: Send, answer: Any, notes: list[str]) -> bool:
        """Passes the outcome of a send to the core: a response, an exception, or neither. Returns true if the core still wanted it."""
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
                if work.step not in self.out:  # the send was broken off while its response was read
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
    """Returns the outcome of a send without objects of the caller: neither headers that are read on every access, nor an exception with
    methods of its own. An outcome from another import of this package counts, too.
    """
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
    # Not in a generator, which would swallow an interrupt.
    for base in type(answer).__mro__:
        if base.__name__ == name and base.__module__ == "hopline._http._base":
            return True
    return False
