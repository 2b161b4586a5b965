"""Stores: where purchases, sessions and orders are kept, so that a crash loses nothing and a job that is run again buys nothing twice."""

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from . import _hopline

Call: TypeAlias = tuple[Any, ...]
"""A call as the core asks for it: its name and its arguments."""
Answer: TypeAlias = tuple[Any, ...]
"""What the core is told: a word, and what belongs to it."""


class OwnedElsewhere(NamedTuple):
    """What `claim` answers where other living clients own all of the names."""

    data: bytes | None
    """What the owner of one of them put last."""


class OverCap(NamedTuple):
    """What `spend` answers where the entry would grow and the day's sum pass the cap."""

    total: Decimal
    """The day's sum as it stands."""


class StoredName(NamedTuple):
    """One name of a list."""

    name: str
    """The name."""
    data: bytes
    """What was put last."""
    whose: Literal["mine", "free", "other"]
    """Who owns it: this client, nobody, or another living client."""


class StoredPage(NamedTuple):
    """What `list` answers."""

    entries: Sequence[StoredName]
    """In the order of their bytes, 500 at most."""
    more: bool
    """Whether more names follow."""


class StoreHandle(Protocol):
    """A store as one client has it: names with data, each owned by one living client at most.

    Each call is made outside every lock of Hopline's, in any thread, and may be repeated: then it does nothing new. A call that raises
    may be done or not; its text goes into the error that follows, so it should name no secret. The rules for each call are in
    `tests/store/README.md`, with the cases that every store must pass.
    """

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | OwnedElsewhere:
        """Makes this client the owner of names that no other living client owns, of `most` at most: first those that it owns already,
        then those with data. Returns them with their data."""

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        """Stores data so that it outlasts a power cut. A crash leaves the old data or the new.

        Returns False, and changes nothing, where this client does not own the name, or with `new` where the name has data or another
        owner. With `new` this client owns the name from then on, with `release` nobody. After `keep_for` seconds the store may drop the
        data, unless somebody owns the name then.
        """

    def delete(self, name: str, /) -> bool:
        """Deletes the data; then nobody owns the name. Returns False, and changes nothing, where there is data and this client does not
        own the name."""

    def release(self, names: Sequence[str] | None, /) -> None:
        """Lets go of those names that this client owns, or of all (`None`)."""

    def list(self, space: str, /, *, after: str | None, open: bool) -> StoredPage:
        """The names that begin with `space` and a full stop and have data: those after `after`, 500 at most. `open` leaves out what was
        put with `keep_for`. Claims nothing."""

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | OverCap:
        """Sets what an entry counts on a day (days since 1 January 1970 by UTC; without one, today by the store's clock, which never goes
        back), unless it would grow and the day's sum pass the cap. Returns the day."""

    def close(self) -> None:
        """Lets go of everything. The garbage collector may call it in any thread, if the client was dropped and not closed."""


class Store(Protocol):
    """A store that any number of clients may share."""

    def open(self) -> StoreHandle:
        """The store for one more client. Raises `OSError` if it can't be used."""


class FolderStore:
    """A folder that any number of clients and processes of one machine may share, also with Hopline for Rust, Kotlin and Swift.

    A name belongs to one living client at a time; the operating system's locks say so. After a crash it is free at once. An intent
    that one client is at work on, or whose session it holds, is `busy` to every other, so that it buys once among all of them.

    Records hold no secrets. Never restore the folder from a backup: an older record would forget what was bought since.
    """

    __slots__ = ("path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        """The folder. It is made when the first client opens it."""

    def open(self) -> StoreHandle:
        """The store for one more client."""
        return _Folder(_hopline.Folder(self.path))

    def __repr__(self) -> str:
        return f"FolderStore({str(self.path)!r})"


class _Folder:
    """A folder as one client has it."""

    __slots__ = ("_folder",)

    def __init__(self, folder: _hopline.Folder) -> None:
        self._folder = folder

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | OwnedElsewhere:
        claimed = self._folder.claim(list(names), most)
        return OwnedElsewhere(claimed[1]) if claimed[0] == "busy" else dict(claimed[1])

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        return self._folder.put(name, data, new, None if keep_for is None else round(keep_for * 1000), release)

    def delete(self, name: str, /) -> bool:
        return self._folder.delete(name)

    def release(self, names: Sequence[str] | None, /) -> None:
        self._folder.release(None if names is None else list(names))

    def list(self, space: str, /, *, after: str | None, open: bool) -> StoredPage:
        entries, more = self._folder.list(space, after, open)
        return StoredPage([StoredName(*entry) for entry in entries], more)

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | OverCap:
        word, found = self._folder.spend(space, day, entry, f"{amount:f}", None if cap is None else f"{cap:f}")
        return OverCap(Decimal(found)) if word == "over" else int(found)

    def close(self) -> None:
        self._folder.close()


FAILED: Answer = ("failed",)


def ask(store: StoreHandle, call: Call) -> Answer:
    """Makes a call of the store."""
    match call:
        case ("claim", names, most):
            claimed = store.claim(names, most)
            return ("busy", claimed.data) if isinstance(claimed, OwnedElsewhere) else ("claimed", list(claimed.items()))
        case ("put", name, data, new, keep_for, release):
            return _written(store.put(name, data, new=new, keep_for=None if keep_for is None else keep_for / 1000, release=release))
        case ("delete", name):
            return _written(store.delete(name))
        case ("release", names):
            store.release(names)
            return ("done",)
        case ("list", space, after, is_open):
            entries, more = store.list(space, after=after, open=is_open)
            return ("listed", [tuple(entry) for entry in entries], more)
        case ("spend", space, day, entry, amount, cap):
            spent = store.spend(space, entry, Decimal(amount), day=day, cap=None if cap is None else Decimal(cap))
            return ("over", f"{spent.total:f}") if isinstance(spent, OverCap) else ("granted", spent)
    raise AssertionError(f"no store has the call {call[0]}")


def _written(done: object) -> Answer:
    # A store that says neither is not to be believed.
    if not isinstance(done, bool):
        raise TypeError(f"`put` and `delete` return True or False, not `{type(done).__name__}`")
    return ("done",) if done else ("lost",)


def said(trouble: BaseException) -> str:
    """What a store said, without more of its paths than it must. Of an exception of a store of the caller's own only its name, since its
    text may hold secrets."""
    if isinstance(trouble, OSError):
        return trouble.strerror or str(trouble) or type(trouble).__name__
    return type(trouble).__name__
