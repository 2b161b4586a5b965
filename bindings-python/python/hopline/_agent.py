"""The clients of the Agent Proxy Session API."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, TypeAlias, Unpack

from ._agent_operations import AgentOperations, AsyncAgentOperations
from ._answers import read
from ._client import Blocking, Tasks
from ._engine import Engine
from ._errors import HoplineError
from ._facts import Event, Verdict
from ._http import choose, choose_async
from ._options import Options, agent_options, new_engine
from ._run import Disk, run, run_async
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
            store: Where records are kept; without it, in memory.
            same_account: Whether records of another key are of this account all the same.
            on_event: Called with each `Event`, in the thread or task that caused it; it should return at once.
            daily_cap_usd: The most, in USD, that this client buys in a UTC day: what was charged, what is in doubt and what is
                under way; recharges do not count. A client without a cap does not count what it buys, so give every client of a store
                the same one. The account's own limit is `daily_limit_usd` of `update_budget`, which holds across clients.
            backend_ready: `backend_ready` as `register_account` answered. If false, purchases are refused.
            options: How to repeat, wait and read; see `Options`.
        """
        # What holds the key is a secret from here on, so that no traceback can show it.
        api_key = None if api_key is None else Secret(api_key)
        send = choose(http)
        self._attach(send, new_engine(agent_options(api_key, base_url, daily_cap_usd, backend_ready), store, same_account, options), on_event)

    def to_async(self, *, http: Any = None) -> "AsyncAgentClient":
        """The same client for tasks: one account, one store, one core. To close either is to close both."""
        return self._for_tasks(AsyncAgentClient, http)

    def observe(self, *, session_id: str, seen: Seen) -> Verdict | None:
        """Advice on what was seen through a session. `None` if this client does not follow the session.

        Nothing is sent, unless the session was opened with `auto_rotate`: then it is rotated where the advice would be to, and
        this waits for that and raises why it failed. Whoever observes the same session meanwhile waits for the same rotation.
        """
        advice = _observed(self._engine, session_id, seen)
        if advice is None:
            return None
        if (command := advice.pop("command", None)) is None:
            return Verdict(**advice)
        return _rotated(advice, run(self._engine, self._send, "rotate_session", lambda core: command))


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
            store: Where records are kept; without it, in memory.
            same_account: Whether records of another key are of this account all the same.
            on_event: Called with each `Event`, in the thread or task that caused it; it should return at once.
            daily_cap_usd: The most, in USD, that this client buys in a UTC day, as for `AgentClient`.
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
        advice = _observed(self._engine, session_id, seen)
        if advice is None:
            return None
        if (command := advice.pop("command", None)) is None:
            return Verdict(**advice)
        return _rotated(advice, await run_async(self._engine, self._send, self._disk, "rotate_session", lambda core: command))


def _observed(engine: Engine, session_id: str, seen: Seen) -> dict[str, Any] | None:
    """What was seen comes to this. If it begins a rotation, or joins one, there is a `command` to wait for."""
    told = json.dumps({"status": seen} if isinstance(seen, int) else seen, default=str)
    found = engine.ask("observe", lambda core: core.observe(session_id, told, *now()))
    return None if found is None else loads(found)


def _rotated(advice: dict[str, Any], taken: Taken | None) -> Verdict:
    assert taken is not None  # a command that has ended was taken
    session = read("rotate_session", taken, Session)
    if isinstance(session, HoplineError):
        raise session
    return Verdict(verdict="rotated", reason=advice["reason"], session=session)
