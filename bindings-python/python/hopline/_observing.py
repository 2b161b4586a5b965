"""What was seen through a session, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from . import _hopline
from ._answers import read
from ._errors import error_of, invalid
from ._types import RotateReason, Session
from ._value import Value
from ._values import dumps, loads
from ._work import now

if TYPE_CHECKING:
    from ._work import Taken

Seen: TypeAlias = int | Literal["captcha", "timeout", "block"]
"""What a request through a session met: an HTTP status, a page that asks for a captcha, no answer, or another block."""


class Verdict(Value):
    """What was seen of a session comes to this. To rotate is your decision, unless it was made by `auto_rotate`."""

    verdict: Literal["keep", "rotate", "rotated", "unsure"]
    """What to do: keep it, rotate it with `reason`, use it as it is now that it was rotated, or wait and see."""
    reason: RotateReason | None = None
    """Of `rotate`: the reason to give. Of `rotated`: the reason that was given."""
    session: Session | None = None
    """Of `rotated`: the session with its new exit, as `rotate_session` answers it."""
    why: str | None = None
    """Of `unsure`: why."""


class Observing:
    """What was seen through a session, and what the core makes of it."""

    def __init__(self, session_id: str, seen: Seen) -> None:
        if not isinstance(seen, int) and seen not in get_args(get_args(Seen)[1]):
            invalid("observe", "seen", "must be an HTTP status, `captcha`, `timeout` or `block`")
        self._session_id = session_id
        self._seen = dumps({"status": seen} if isinstance(seen, int) else seen)
        self._advice: dict[str, Any] | None = None

    def begin(self, core: _hopline.Client) -> int | None:
        """Tells the core. If it begins a rotation, or joins one, that is the command to wait for."""
        try:
            advice = core.observe(self._session_id, self._seen, *now())
        except ValueError as error:
            refused = error_of(str(error))
        else:
            self._advice = None if advice is None else loads(advice)
            command: int | None = None if self._advice is None else self._advice.pop("command", None)
            return command
        raise refused

    def verdict(self, taken: Taken | None) -> Verdict | None:
        """The advice, after a rotation with its session."""
        if self._advice is None or taken is None:
            return None if self._advice is None else Verdict(**self._advice)
        return Verdict(verdict="rotated", reason=self._advice["reason"], session=read(taken, Session))
