"""The clients of the Agent Proxy Session API."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, TypeAlias, Unpack

from . import _hopline
from ._agent_operations import AgentOperations, AsyncAgentOperations
from ._answers import read
from ._client import Blocking, Tasks
from ._engine import Engine
from ._errors import HoplineError
from ._facts import Event, Verdict
from ._http import choose, choose_async
from ._options import Options, agent_options, new_engine
from ._run import run
from ._store import Store
from ._types import Session
from ._values import Secret, loads
from ._work import Taken, now

Seen: TypeAlias = int | Literal["captcha", "timeout", "block"]
"""What a request through a session met: an HTTP status, a page that asks for a captcha, no answer, or another block."""


class AgentClient(Blocking, AgentOperations):
    """The client of one account, for threads. Any number of them may use it at once.

    Leaving a `with` block of it closes it: what is under way is given up, records stay, no session is ended.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        http: Any = None,
        store: Store | None = None,
        same_account: bool = False,
        on_event: Callable[[Event], object] | None = None,
        daily_cap_usd: Decimal | float | None = None,
        backend_ready: bool | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Makes a client.

        Args:
            api_key: The API key; without it, that of the environment's HOPLINE_API_KEY.
            base_url: The address of the API, such as `https://host/v1`; without it, HOPLINE_BASE_URL.
            http: A `requests.Session`, `httpx.Client`, `urllib3.PoolManager`, or any callable that takes a `Request` and
                returns a `Response`; without it, the standard library.
            store: Where purchases, sessions and orders are kept, such as `FolderStore(path)`. Default: this client's memory.
            same_account: Whether what was stored under another key or base URL belongs to this account: say so after either has changed.
            on_event: Called with each `Event`, in the thread or task that caused it; it should return at once.
            daily_cap_usd: The most, in USD, that all clients of the store with the same `account` buy in a UTC day, together: what was
                charged, what is in doubt and what is under way; recharges do not count. A client without a cap does not count what it
                buys, so give every client of a store the same one. The account's own limit, which holds for all stores, is
                `daily_limit_usd` of `update_budget`.
            backend_ready: `backend_ready` as `register_account` answered. If false, purchases are refused.
            options: How to repeat, wait and read; see `Options`.
        """
        # What holds the key is a secret from here on, so that no traceback can show it.
        api_key = None if api_key is None else Secret(api_key)
        send = choose(http)
        self._attach(send, new_engine(agent_options(api_key, base_url, daily_cap_usd, backend_ready), store, same_account, options), on_event)

    def to_async(self, *, http: Any = None) -> AsyncAgentClient:
        """The same client for tasks: one account, one store, one core. To close either is to close both."""
        return self._for_tasks(AsyncAgentClient, http)

    def observe(self, *, session_id: str, seen: Seen) -> Verdict | None:
        """Advice on what was seen through a session. `None` if this client does not follow the session.

        Nothing is sent, unless the session was opened with `auto_rotate`: then it is rotated where the advice would be to, and
        this waits for that and raises why it failed. Whoever observes the same session meanwhile waits for the same rotation.
        """
        observed = _Observed(session_id, seen)
        return observed.verdict(run(self._engine, self._send, "observe", observed.begin))

    def release_session(self, *, session_id: str) -> bool:
        """Stops following a session without ending it, so that another client of the store may have it. Returns whether it was
        followed."""
        return self._now("release_session", lambda core: core.release_session(session_id))


class AsyncAgentClient(Tasks, AsyncAgentOperations):
    """The client of one account, for tasks. Any number of them may use it at once, in any event loop.

    Cancelling a task cancels its call: the request is aborted, unless others wait for it too, and the record is kept. Leaving an
    `async with` block closes the client and ends no session.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        http: Any = None,
        store: Store | None = None,
        same_account: bool = False,
        on_event: Callable[[Event], object] | None = None,
        daily_cap_usd: Decimal | float | None = None,
        backend_ready: bool | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Makes a client.

        Args:
            api_key: The API key; without it, that of the environment's HOPLINE_API_KEY.
            base_url: The address of the API, such as `https://host/v1`; without it, HOPLINE_BASE_URL.
            http: An `httpx.AsyncClient`, `aiohttp.ClientSession`, one that blocking clients take, or any callable that takes a
                `Request` and returns a `Response` or awaits it; without it, the standard library in threads.
            store: Where purchases, sessions and orders are kept, such as `FolderStore(path)`. Default: this client's memory.
            same_account: Whether what was stored under another key or base URL belongs to this account: say so after either has changed.
            on_event: Called with each `Event`, in the thread or task that caused it; it should return at once.
            daily_cap_usd: The most, in USD, that all clients of the store with the same `account` buy in a UTC day, together; see
                `AgentClient`.
            backend_ready: `backend_ready` as `register_account` answered. If false, purchases are refused.
            options: How to repeat, wait and read; see `Options`.
        """
        # What holds the key is a secret from here on, so that no traceback can show it.
        api_key = None if api_key is None else Secret(api_key)
        send = choose_async(http)
        self._attach(send, new_engine(agent_options(api_key, base_url, daily_cap_usd, backend_ready), store, same_account, options), on_event)

    def to_sync(self, *, http: Any = None) -> AgentClient:
        """The same client for threads: one account, one store, one core. To close either is to close both."""
        return self._for_threads(AgentClient, http)

    async def observe(self, *, session_id: str, seen: Seen) -> Verdict | None:
        """Advice on what was seen through a session. `None` if this client does not follow the session.

        Nothing is sent, unless the session was opened with `auto_rotate`: then it is rotated where the advice would be to, and
        this waits for that and raises why it failed. Whoever observes the same session meanwhile waits for the same rotation.
        """
        observed = _Observed(session_id, seen)
        return observed.verdict(await self._driven("observe", observed.begin))

    async def release_session(self, *, session_id: str) -> bool:
        """Stops following a session without ending it, so that another client of the store may have it. Returns whether it was
        followed."""
        return await self._now("release_session", lambda core: core.release_session(session_id))


class _Observed:
    """What was seen through a session, and what the core makes of it."""

    def __init__(self, session_id: str, seen: Seen) -> None:
        self._session_id = session_id
        self._seen = json.dumps({"status": seen} if isinstance(seen, int) else seen, default=str)
        self._advice: dict[str, Any] | None = None

    def begin(self, core: _hopline.Client) -> int | None:
        """Tells the core. If it begins a rotation, or joins one, that is the command to wait for."""
        try:
            advice = core.observe(self._session_id, self._seen, *now())
        except ValueError as error:
            refused = HoplineError._parse(str(error))
        else:
            self._advice = None if advice is None else loads(advice)
            command: int | None = None if self._advice is None else self._advice.pop("command", None)
            return command
        raise refused

    def verdict(self, taken: Taken | None) -> Verdict | None:
        """The advice, after a rotation with its session."""
        if self._advice is None or taken is None:
            return None if self._advice is None else Verdict(**self._advice)
        session = read(taken, Session)
        if isinstance(session, HoplineError):
            raise session
        return Verdict(verdict="rotated", reason=self._advice["reason"], session=session)
