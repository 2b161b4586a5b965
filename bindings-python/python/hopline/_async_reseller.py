"""The client of the Reseller Backend API for tasks. The one for threads is printed from this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ._async_reseller_operations import AsyncResellerOperations
from ._errors import check_import
from ._http import transport_for_threads, transport_for_tasks
from ._options import new_engine, reseller_options
from ._store import Store
from ._told import Event, Options
from ._values import Secret

if TYPE_CHECKING:
    from ._sync_reseller import ResellerClient


class AsyncResellerClient(AsyncResellerOperations):
    """The client of one reseller, for tasks. Any number of them may use it at once, in any event loop.

    The client logs in by itself, as `ResellerClient` does. Cancelling a task cancels its call: the request is aborted, unless
    others wait for it too, and the record is kept; an order continues. Leaving an `async with` block closes the client and cancels
    no order.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        *,
        username: str | Secret | None = None,
        password: str | Secret | None = None,
        token: str | Secret | None = None,
        token_codes: Sequence[str] | None = None,
        doubt_codes: Sequence[str] | None = None,
        refusal_codes: Sequence[str] | None = None,
        base_url: str | None = None,
        http: Any = None,
        store: Store | None = None,
        same_account: bool = False,
        on_event: Callable[[Event], object] | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Makes a client.

        Args:
            username: The reseller's name. If no username, no password and no token is given: the environment's HOPLINE_USERNAME and
                HOPLINE_PASSWORD.
            password: The password for the username.
            token: A token to start with. Without a username and a password the client has no other.
            token_codes: The codes that mean that the token is refused, beside HTTP 401. Default: `401`.
            doubt_codes: Further codes that do not say whether a write was done: then it is `in_doubt`. They are checked after `token_codes`
                and before `refusal_codes`. Each is compared as text, whole. Default: none.
            refusal_codes: Further codes that say that a write was not done: then it is `refused`, though not under HTTP 408, 409, 425, 429
                and 5xx. The service documents only one code, so the client assumes which others say so, and leaves all others in doubt.
                Default: none.
            base_url: The address of the API, such as `https://host/api`. Default: the environment's HOPLINE_BACKEND_URL.
            http: An `httpx.AsyncClient`, `aiohttp.ClientSession`, one that blocking clients take, or any callable that takes a `Request`
                and returns a `Response` or awaits it. Default: the standard library in threads.
            store: The store of purchases and orders, such as `FolderStore(path)`. Default: this client's memory.
            same_account: True if records of another username or base URL are of this account, because only those have changed.
            on_event: Called with each `Event`, in the thread or task that caused it; it should return at once.
            options: How to repeat, wait and read; see `Options`.
        """
        # The credentials are secrets from here on, so that no traceback can show them.
        username, password, token = (None if one is None else Secret(one) for one in (username, password, token))
        send = transport_for_tasks(http)
        codes = {"token_codes": token_codes, "doubt_codes": doubt_codes, "refusal_codes": refusal_codes}
        own = reseller_options(username, password, token, codes, base_url)
        self._attach(send, new_engine(own, store, same_account, options), on_event)

    @property
    def token(self) -> Secret | None:
        """The token that is used at present: keep it in a safe place, to start with it next time."""
        token = self._engine.call("token", lambda core: core.token())
        return None if token is None else Secret(token)

    def to_sync(self, *, http: Any = None) -> ResellerClient:
        """The same client for threads: one account, one store, one core. Closing either closes both."""
        check_import()
        from ._sync_reseller import ResellerClient

        other = ResellerClient.__new__(ResellerClient)
        other._attach(transport_for_threads(http), self._engine)
        return other
