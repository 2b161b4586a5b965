"""Stores of purchases, sessions and orders, so that a crash loses nothing and a job that is run again buys nothing twice."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from . import _hopline
from ._told import Whose

if TYPE_CHECKING:
    from decimal import Decimal


class StoreNotOpened(OSError):
    """A store could not be opened at all, so the call was certainly not done. A store of your own raises it if it never reached its data;
    any other exception means that the call may or may not be done.
    """


class OwnedElsewhere(NamedTuple):
    """The result of `claim` if other living clients own all of the names."""

    data: bytes | None
    """The data that the owner of one of them put last."""


class OverCap(NamedTuple):
    """The result of `spend` if the entry would grow and the day's sum pass the cap."""

    total: Decimal
    """The day's sum as it stands."""
    day: int
    """The day, in days since 1 January 1970 by UTC."""


class StoredName(NamedTuple):
    """One name of a list."""

    name: str
    """The name."""
    data: bytes
    """The data that was put last."""
    whose: Whose
    """The owner: this client, none, or another living client."""


class StoredPage(NamedTuple):
    """The result of `list`."""

    entries: Sequence[StoredName]
    """The entries in the order of their bytes, at most 500."""
    more: bool
    """True if more names follow."""


class Store(Protocol):
    """The store of a client's purchases, sessions and orders: names with data, each owned by at most one living client. `FolderStore` is
    one; write one of your own to keep them in a database.

    An object serves one client; another client needs an object of its own. Each call is made outside every lock of Hopline's, in any
    thread, and may be repeated: then it does nothing new. A call that raises may or may not be done. The message of an `OSError` becomes a
    note on the error that follows, so it should name no secret; of other exceptions only the type does.

    The rules for each call are in `tests/store/README.md`, with the cases that every store must pass. Stores whose claims can end while
    their owner lives are `LeasedStore`. A call must not be done after it has raised, such as after a time limit of the store's own. A store
    that can't guarantee that sets `late_calls = True`; then a purchase whose record could not be stored is never reported as without
    effect. A call holds its caller for as long as it takes, so give it a time limit; a task that is cancelled waits 5 s for it at most.
    """

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | OwnedElsewhere:
        """Makes this client the owner of names that no other living client owns, of `most` at most: first those that it owns already,
        then those with data. Returns them with their data."""
        ...

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        """Stores data so that it survives a power cut. A crash leaves the old data or the new.

        Returns False, and changes nothing, if this client does not own the name, or with `new` if the name has data or another owner. With
        `new` this client owns the name from then on, with `release` no client does. After `keep_for` seconds the store may drop the data,
        unless the name has an owner then.
        """
        ...

    def delete(self, name: str, /) -> bool:
        """Deletes the data; then nobody owns the name. Returns False, and changes nothing, where there is data and this client does not
        own the name."""
        ...

    def release(self, names: Sequence[str] | None, /) -> None:
        """Releases those of the names that this client owns, or all (`None`)."""

    def list(self, space: str, /, *, after: str | None, open: bool) -> StoredPage:
        """The names that begin with `space` and a full stop and have data: those after `after`, 500 at most. `open` leaves out what was
        put with `keep_for`. Claims nothing."""
        ...

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | OverCap:
        """Sets what an entry counts on a day (days since 1 January 1970 by UTC; without one, today by the store's clock, which never goes
        back), unless it would grow and the day's sum pass the cap. Returns the day."""
        ...

    def close(self) -> None:
        """Releases everything: the client was closed, or the garbage collector found it, in any thread."""


class LeasedStore(Store, Protocol):
    """A store whose claims can end while their owner lives, as in a database that gets no sign of life from a client for a while.

    Others may have such a name 60 seconds after the last sign of life of its owner, and not before.
    """

    def on_lost(self, lost: Lost, /) -> None:
        """Registers the function to call, in any thread, when claims have ended: with the names, or without any for all. Called once. The
        store must call the function before it grants a claim that was made meanwhile, or the client would forget that one, too.
        """

    def vouches(self) -> bool:
        """Returns true if the claims stand for the next 20 seconds. Called before each request, which is not sent if they may not."""
        ...


class Lost(Protocol):
    """Reports to a client that claims of its store have ended."""

    def __call__(self, names: Sequence[str] | None = None, /) -> None:
        """Reports that these names are not this client's any more; without names, all of them."""


class FolderStore:
    """A folder that any number of clients and processes of one machine may share, also with Hopline for Rust, Kotlin and Swift. Give each
    client an object of its own.

    A name belongs to one living client at a time, by the operating system's locks. After a crash it is free at once. An intent that one
    client works on, or whose session it holds, is `busy` for every other, so that it buys once among all of them.

    The folder is opened, and made if it is missing, by the client's first call that needs it. Give it a folder of its own. Records hold no
    secrets. Never restore the folder from a backup: an older record lacks the purchases made since.
    """

    __slots__ = ("_clock", "_folder", "_lock", "path")

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] | None = None) -> None:
        """Makes a store in a folder.

        Args:
            path: The folder.
            clock: Returns seconds since 1970, for tests. Default: the machine's clock.
        """
        from pathlib import Path

        self.path = Path(path).absolute()
        """The folder. A relative path is relative to the program's folder at the moment when it makes the store."""
        self._clock = clock
        self._lock = threading.Lock()
        self._folder: _hopline.Folder | None = None

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | OwnedElsewhere:
        """See `Store`."""
        claimed = self._opened().claim(list(names), most)
        return OwnedElsewhere(claimed[1]) if claimed[0] == "busy" else dict(claimed[1])

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        """See `Store`."""
        return self._opened().put(name, data, new, None if keep_for is None else round(keep_for * 1000), release)

    def delete(self, name: str, /) -> bool:
        """See `Store`."""
        return self._opened().delete(name)

    def release(self, names: Sequence[str] | None, /) -> None:
        """See `Store`."""
        # A folder that was never opened owns nothing.
        if (folder := self._folder) is not None:
            folder.release(None if names is None else list(names))

    def list(self, space: str, /, *, after: str | None, open: bool) -> StoredPage:
        """See `Store`."""
        entries, more = self._opened().list(space, after, open)
        return StoredPage([StoredName(*entry) for entry in entries], more)

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | OverCap:
        """See `Store`."""
        from decimal import Decimal

        match self._opened().spend(space, day, entry, f"{amount:f}", None if cap is None else f"{cap:f}"):
            case ("over", on, total):
                return OverCap(Decimal(total), on)
            case (_, granted):
                return int(granted)

    def close(self) -> None:
        """See `Store`."""
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            folder.close()

    def _opened(self) -> _hopline.Folder:
        with self._lock:
            if self._folder is None:
                clock = self._clock
                try:
                    self._folder = _hopline.Folder(self.path, None if clock is None else lambda: round(clock() * 1000))
                except OSError as error:
                    raise StoreNotOpened(*error.args) from None
            return self._folder

    def __repr__(self) -> str:
        return f"FolderStore({str(self.path)!r})"
