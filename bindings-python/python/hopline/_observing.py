"""Observations through a session, and the advice that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _hopline
from ._answers import read
from ._errors import error_of
from ._seen import Seen, seen_text
from ._types import RotateReason, Session
from ._value import Value
from ._values import loads
from ._work import now

if TYPE_CHECKING:
    from ._work import Owner, Taken


class Verdict(Value):
    """The advice after an observation of a session. Rotating is your decision, unless the session has `auto_rotate`."""

    verdict: Literal["keep", "rotate", "rotated", "unsure"]
    """The advice: keep the exit, rotate it with `reason`, use the session that was rotated, or wait."""
    reason: RotateReason | None = None
    """Of `rotate`: the reason to give. Of `rotated`: the reason of the rotation."""
    session: Session | None = None
    """Of `rotated`: the session with its new exit, as `rotate_session` returns it."""
    why: str | None = None
    """Of `unsure`: the reason."""


class Observing:
    """An observation through a session, and the core's advice."""

    def __init__(self, session_id: str, seen: Seen) -> None:
        self._session_id = session_id
        self._seen = seen_text(seen)
        self._advice: dict[str, Any] | None = None

    def begin(self, core: _hopline.Client, owner: Owner) -> None:
        """Passes the observation to the core. If that begins a rotation, or joins one, its command is the one to wait for."""
        try:
            advice = core.observe(self._session_id, self._seen, *now(), owner)
        except ValueError as error:
            refused = error_of(str(error))
        else:
            self._advice = None if advice is None else loads(advice)
            if self._advice is not None:
                self._advice.pop("command", None)
            return
        raise refused

    def verdict(self, taken: Taken | None) -> Verdict | None:
        """The advice, after a rotation with its session."""
        if self._advice is None or taken is None:
            return None if self._advice is None else Verdict(**self._advice)
        return Verdict(verdict="rotated", reason=self._advice["reason"], session=read(taken, Session))
