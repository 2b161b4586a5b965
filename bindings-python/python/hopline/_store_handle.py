"""The store of a client in the form that its engine calls: calls in the core's words, and answers as it reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from ._errors import refuse
from ._log import log
from ._store import Lost, OverCap, OwnedElsewhere, Store
from ._threads import Threads, in_background
from ._waiting import Later

Call: TypeAlias = tuple[Any, ...]
"""A call of the core: its name and its arguments."""
Answer: TypeAlias = tuple[Any, ...]
"""An answer for the core: a word, and its values."""

FAILED: Answer = ("failed",)
NEVER: Answer = ("never",)
CALLS = ("claim", "put", "delete", "release", "list", "spend", "close")
_MOST_VOUCHING = 16
"""The most threads that ask whether the claims stand, if a store does not answer."""
_serving: dict[int, StoreHandle] = {}
"""By the identity of each store that has a client: the handle of that client."""


class StoreHandle:
    """The store of one client, in the form that the core calls."""

    def __init__(self, store: Store) -> None:
        # Two clients with one object would both own its names, and buy twice.
        if _serving.setdefault(id(store), self) is not self:
            refuse("client", "store_in_use")
        self._store = store
        self._vouches: Callable[[], bool] | None = getattr(store, "vouches", None)
        self._vouching = Threads(_MOST_VOUCHING)
        self._over, self._is_open = Later[None](), [True]
        self.asking = Threads(4)
        """The threads that wait for the store in place of an event loop."""

    def tell(self, lost: Lost) -> None:
        """Gives a store whose claims can end the function to call then."""
        on_lost: Callable[[Lost], None] | None = getattr(self._store, "on_lost", None)
        if on_lost is not None:
            on_lost(lost)

    def vouches(self) -> Later[bool] | None:
        """Returns whether the claims stand. A request is not sent before it is known. `None`: they can't end."""
        if (vouches := self._vouches) is None:
            return None
        is_sure: Later[bool] = Later()

        def ask() -> None:
            if is_sure.is_wanted:
                is_sure.tell(_is_sure(vouches))

        try:
            self._vouching.submit(ask)
        except RuntimeError:
            is_sure.tell(False)
        return is_sure

    def ask(self, call: Call) -> Answer:
        """Makes a call of the store."""
        store = self._store
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
                from decimal import Decimal

                spent = store.spend(space, entry, Decimal(amount), day=day, cap=None if cap is None else Decimal(cap))
                return ("over", spent.day, f"{spent.total:f}") if isinstance(spent, OverCap) else ("granted", spent)
        raise AssertionError(f"no store has the call {call[0]}")

    def close(self) -> Later[None]:
        """Lets the store release everything, once. A store of the caller's own may fail, or hang in a thread that no caller has to wait for."""

        def let_go() -> None:
            try:
                self._is_open.pop()
            except IndexError:  # another thread lets go
                return
            calls: list[Callable[[], object]] = [lambda: self._store.release(None), self._store.close]
            for call in calls:
                try:
                    call()
                except BaseException as trouble:
                    log("error", "a store could not be closed: it raised %s", type(trouble).__name__)  # its text may hold secrets
            self._vouching.close()
            self.asking.close()
            self.leave()
            self._over.tell(None)

        try:
            in_background(let_go)
        except RuntimeError:  # the store may hang here, but no other thread would do it later
            let_go()
        return self._over

    def leave(self) -> None:
        """Another client may now use the store."""
        _serving.pop(id(self._store), None)


def _is_sure(vouches: Callable[[], bool]) -> bool:
    try:
        return vouches() is True
    except BaseException as trouble:
        log("error", "a store could not say whether its claims stand: it raised %s", type(trouble).__name__)
        return False


def _written(done: object) -> Answer:
    # A store whose answer is neither is not believed.
    if not isinstance(done, bool):
        raise TypeError(f"`put` and `delete` return True or False, not `{type(done).__name__}`")
    return ("done",) if done else ("lost",)


def said(trouble: BaseException) -> str:
    """The message of a store's failure, with no more of its paths than needed. Of an exception of a store of the caller's own only the
    type, since its text may hold secrets.
    """
    if isinstance(trouble, OSError):
        with suppress(Exception):
            return trouble.strerror or str(trouble) or type(trouble).__name__
    return type(trouble).__name__
