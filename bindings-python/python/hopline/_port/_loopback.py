"""A port of a program: for one lease, one session, or a proxy from elsewhere. Its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._errors import misuse
from .._log import log
from .._threads import in_background
from .._waiting import Later, wait_for
from .._work import process
from ._exits import Exits
from ._server import Port

_PATIENCE = 10.0


class _Running:
    """A port in its thread. The thread keeps nothing of the program alive but this."""

    def __init__(self, exits: Exits, number: int) -> None:
        self._exits, self._number = exits, number
        self.began: Later[str | BaseException] = Later()
        self.over: Later[None] = Later()
        self.pid = process.id
        self._is_ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port: Port | None = None

    def run(self) -> None:
        """The thread."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self.began.is_known:
                self.began.tell(error)
            else:
                log("error", "a port has ended: it raised %s", type(error).__name__)
        finally:
            self.over.tell(None)

    async def _serve(self) -> None:
        self._port = port = Port(self._exits)
        self._loop = asyncio.get_running_loop()
        url = await port.open("127.0.0.1", self._number)
        if self._is_ended:  # before there was a loop
            port.over.set()
        self.began.tell(url)
        await port.serve()

    def end(self) -> None:
        """Ends the port, from any thread, and without waiting."""
        self._is_ended = True
        if self._loop is None or self._port is None or self.pid != process.id:
            return
        try:
            self._loop.call_soon_threadsafe(self._port.over.set)
        except RuntimeError:  # it has ended
            return


class Loopback:
    """A port on 127.0.0.1 that leads to the target through one session, and needs no login: HTTP CONNECT, plain HTTP and SOCKS5. Use it in
    a `with` or `async with` block, which gives the URL and closes the port. The port of a lease also closes once the lease is given back.
    """

    __slots__ = ("__weakref__", "_finalizer", "_held", "_running", "url")

    url: str
    """The URL of the port, such as `http://127.0.0.1:41234`. `socks5h://127.0.0.1:41234` leads to the same."""

    def __init__(self, exits: Exits, number: int, held: object, at_end: Callable[[Callable[[], None]], object] | None) -> None:
        self._held: object = held
        self._running = running = _Running(exits, number)
        self._finalizer = weakref.finalize(self, running.end)
        self._finalizer.atexit = False
        in_background(running.run, "hopline-port")
        if not wait_for(running.began, _PATIENCE):
            misuse("on_loopback", "the thread of the port did not begin in time")
        if not isinstance(running.began.value, str):
            raise running.began.value
        self.url = running.began.value
        if at_end is not None:
            at_end(running.end)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a port can't be pickled or copied; hand on its `url`")

    def close(self) -> None:
        """Closes the port and its connections. A second call does nothing."""
        self._running.end()
        self._held = None
        if self._running.pid == process.id:
            wait_for(self._running.over, _PATIENCE)

    def __enter__(self) -> str:
        return self.url

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> str:
        return self.url

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
