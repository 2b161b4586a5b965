"""A session that was opened: its state, its operations, and the `async with` block that ends it."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ._errors import noted
from ._opening import Opening
from ._seen import Seen
from ._origins import SessionOrigin
from ._proxy import of
from ._session import Known, SessionReply, plain
from ._told import HoplineError, Phase
from ._types import Proxy, RotateReason, Session
from ._value import Reply, field
from ._values import UNSET

if TYPE_CHECKING:
    from ._engine import Engine
    from ._observing import Verdict

R = TypeVar("R", bound=Reply)


class _Caller(Protocol):
    """The part of a client that a session uses."""

    _engine: Engine

    async def _call(self, operation: str, params: Mapping[str, Any], options: Mapping[str, Any], reply: type[R]) -> R:
        """Makes a call."""
        ...

    async def _observe(self, session_id: str, seen: Seen) -> Verdict | None:
        """Returns advice after an observation."""
        ...

    async def _release(self, session_id: str) -> bool:
        """Follows the session no more."""
        ...


class AsyncOpenSession(SessionReply):
    """A session that a task opened. The object shows the newest state that its client has read, by any call.

    As an async context manager it ends a dynamic one, unless it was opened with `keep=True`.
    """

    _client: _Caller = field(init=False)
    _keep: bool = field(init=False)
    _known: Known = field(init=False)

    @classmethod
    def _of(cls, client: _Caller, found: SessionReply, keep: bool) -> Self:
        opened = cls.__new__(cls)
        known = client._engine.know(found)
        own = {"session_id": found.session_id, "charged_usd": found.charged_usd}
        for name, value in {**own, "_client": client, "_keep": keep, "_known": known}.items():
            object.__setattr__(opened, name, value)
        return opened

    if not TYPE_CHECKING:

        @property
        def session(self) -> Session:
            """The newest state of the session."""
            return self._known.session

        @property
        def phase(self) -> Phase:
            """The phase of the session."""
            return self._known.phase

    @property
    def proxy(self) -> Proxy:
        """The proxy; empty as long as the session is not usable."""
        return of(SessionOrigin(self.session_id, self._known), (self.session.proxy or Proxy()).__replace__())

    @property
    def generation(self) -> int:
        """The number of known changes of its exit or credentials: make new connections when it has grown."""
        return self._known.generation

    async def rotate(self, reason: RotateReason = "manual") -> Session:
        """Gives the session another exit. Credentials are read again if they are known. Raises as `rotate_session` does."""
        wanted = True if self.proxy.password is not None else UNSET
        params = {"session_id": self.session_id, "include_credentials": wanted, "reason": reason}
        return await self._client._call("rotate_session", params, {}, Session)

    async def observe(self, seen: Seen) -> Verdict | None:
        """Returns advice after an observation from a request; see `observe` of the client."""
        return await self._client._observe(self.session_id, seen)

    async def refresh(self, *, credentials: bool | None = None) -> Session:
        """Reads the session. Raises as `get_session` does.

        Args:
            credentials: True to read the username and password. Default: true if they are known.
        """
        wanted = True if (self.proxy.password is not None if credentials is None else credentials) else UNSET
        return await self._client._call("get_session", {"session_id": self.session_id, "include_credentials": wanted}, {}, Session)

    async def terminate(self) -> None:
        """Ends the session, a static one too; nothing is refunded. Raises as `terminate_session` does."""
        await self._client._call("terminate_session", {"session_id": self.session_id}, {}, Reply)
        self._known.phase = "ended"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._keep or self.session.session_type == "static":
                await self._client._release(self.session_id)
            elif self._client._engine.follows(self.session_id):
                await self.terminate()
        except HoplineError as failure:
            if error is None:
                raise
            error.add_note(f"and the session `{self.session_id}` could not be ended: {noted(failure)}")

    def __replace__(self, **members: Any) -> Any:
        return plain(self.session_id, self.phase, self.session, self.charged_usd).__replace__(**members)

    def __reduce__(self) -> tuple[Any, ...]:
        # The operations belong to the client, and stay there.
        return plain, (self.session_id, self.phase, self.session, self.charged_usd)


class AsyncOpening(Opening[AsyncOpenSession]):
    """A coroutine that opens a session: `await` it, make a task of it, or `async with` it, which ends a dynamic session unless it was
    opened with `keep=True`. The purchase begins when the coroutine is awaited, which is possible once.
    """
