"""The opening of a pool and the acquiring of a lease, for `await` or `async with`. Threads do not need this."""

from ._async_pool import AsyncLease, AsyncPool
from ._opening import Opening


class AsyncPoolOpening(Opening[AsyncPool]):
    """A coroutine that opens a pool: `await` it, or `async with` it, which closes the pool. The coroutine can be awaited once."""


class AsyncAcquiring(Opening[AsyncLease]):
    """A coroutine that acquires a lease: `await` it, or `async with` it, which gives the lease back. The coroutine can be awaited once."""
