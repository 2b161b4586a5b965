"""The client of the Agent Proxy Session API for tasks. The one for threads is printed from this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from ._answers import read
from ._async_agent_operations import AsyncAgentOperations
from ._async_pool import AsyncPoolOpening
from ._commands import begin
from ._errors import check_import
from ._http import transport_for_threads, transport_for_tasks
from ._observing import Verdict
from ._options import agent_options, new_engine
from ._seen import Seen
from ._store import Store
from ._told import Event, KnownPool, Options, read_known_pool
from ._value import Reply
from ._values import Secret

if TYPE_CHECKING:
    from decimal import Decimal

    from ._sync_agent import AgentClient


class AsyncAgentClient(AsyncAgentOperations):
    """The client of one account, for tasks. Any number of them may use it at once, in any event loop.

    Cancelling a task cancels its call: the request is aborted and the record is kept. If others wait for the same operation, the
    request continues, or is sent again with the same key. Leaving an `async with` block closes the client and ends no session.
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
            api_key: The API key. Default: the environment's HOPLINE_API_KEY.
            base_url: The address of the API, such as `https://host/v1`. Default: the environment's HOPLINE_BASE_URL.
            http: An `httpx.AsyncClient`, `aiohttp.ClientSession`, one that blocking clients take, or any callable that takes a `Request`
                and returns a `Response` or awaits it. Default: the standard library in threads.
            store: The store of purchases, sessions and orders, such as `FolderStore(path)`. Default: this client's memory.
            same_account: True if records of another key or base URL are of this account, because only those have changed.
            on_event: Called with each `Event`, in the thread or task that caused it; it should return at once.
            daily_cap_usd: The most, in USD, that all clients of the store with the same `account` spend in a UTC day, together: charges,
                purchases in doubt and purchases under way; recharges do not count. A purchase beyond it is `refused` before it is sent.
                Each key counts at its quote, on each day that it is sent on; a charge above its quote is counted and can pass the cap. A
                client without a cap does not count its purchases, so give every client of a store the same cap. The account's own limit,
                which holds for all stores, is `daily_limit_usd` of `update_budget`.
            backend_ready: `backend_ready` from the answer of `register_account`. If false, purchases of sessions are `refused` before they
                are sent, until `get_account` says otherwise.
            options: How to repeat, wait and read; see `Options`.
        """
        # The key is a secret from here on, so that no traceback can show it.
        api_key = None if api_key is None else Secret(api_key)
        send = transport_for_tasks(http)
        self._attach(send, new_engine(agent_options(api_key, base_url, daily_cap_usd, backend_ready), store, same_account, options), on_event)

    def to_sync(self, *, http: Any = None) -> AgentClient:
        """The same client for threads: one account, one store, one core. Closing either closes both."""
        check_import()
        from ._sync_agent import AgentClient

        other = AgentClient.__new__(AgentClient)
        other._attach(transport_for_threads(http), self._engine)
        return other

    async def list_pools(self) -> list[KnownPool]:
        """Returns the pools in the store, opened by any program. Nothing is sent."""
        told = read(await self._run("list_pools", begin("list_pools", {}, {})), Reply).raw
        return [read_known_pool(one) for one in told["pools"]]

    def join_pool(self, name: str) -> AsyncPoolOpening:
        """Opens a pool as other programs opened it, to read its status, or to pause, resume or drain it. A joined pool neither lends nor
        buys.

        Raises `Invalid` if the store has no such pool.
        """
        return self._open_pool({"name": name}, operation="join_pool")

    async def observe(self, *, session_id: str, seen: Seen) -> Verdict | None:
        """Returns advice after an observation through a session. `None` if this client does not follow the session.

        `seen` is an HTTP status, a word such as `captcha`, or the response or exception of an HTTP client. A failure of the proxy is told
        apart from one of the target, which is no observation about the session; a failure that may be either's is `unknown`, and a reason
        to read the session again once it comes three times in a row.

        Nothing is sent, unless the session was opened with `auto_rotate`: then the session is rotated if the advice is to rotate, and this
        call waits for the rotation and raises its failure. Other observers of the same session wait for the same rotation.
        """
        return await self._observe(session_id, seen)

    async def release_session(self, *, session_id: str) -> bool:
        """Stops following a session without ending it, so that another client of the store may take it. Returns true if it was followed."""
        return await self._release(session_id)
