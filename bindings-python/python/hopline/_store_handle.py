"""The store of a client as its engine asks it: calls as the core words them, and answers as it reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ._errors import refuse
from ._log import log
from ._store import Lost, OverCap, OwnedElsewhere, Store
from ._threads import Threads, in_background
from ._waiting import Later

Call: TypeAlias = tuple[Any, ...]
"""A call as the core asks for it: its name and its arguments."""
Answer: TypeAlias = tuple[Any, ...]
"""What the core is told: a word, and what belongs to it."""

FAILED: Answer = ("failed",)
NEVER: Answer = ("never",)
CALLS = ("claim", "put", "delete", "release", "list", "spend", "close")
_MOST_VOUCHING = 16
"""How many threads ask whether the claims stand, where a store does not answer."""
_serving: dict[int, StoreHandle] = {}
"""By the identity of each store that has a client: the handle of that client."""


class StoreHandle:
    """The store of one client, as the core asks it."""

    def __init__(self, store: Store) -> None:
        # Two clients with one object would both own its names, and buy twice.
        if _serving.setdefault(id(store), self) is not self:
            refuse("client", "store_in_use")
        self._store = store
        self._vouches: Callable[[], bool] | None = getattr(store, "vouches", None)
        self._vouching = Threads(_MOST_VOUCHING)
        self.asking = Threads(4)
        """Threads that wait for the store in place of an event loop."""

    def tell(self, lost: Lost) -> None:
        """Gives a store whose claims can end what it is to call then."""
        on_lost: Callable[[Lost], None] | None = getattr(self._store, "on_lost", None)
        if on_lost is not None:
            on_lost(lost)

    def vouches(self) -> Later[bool] | None:
        """Whether the claims stand. A request is not sent before it is known. `None`: they can't end."""
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
        """The store lets go of everything. One of the caller's own may fail, or hang in a thread that nobody has to wait for."""
        over: Later[None] = Later()

        def let_go() -> None:
            calls: list[Callable[[], object]] = [lambda: self._store.release(None), self._store.close]
            for call in calls:
                try:
                    call()
                except BaseException as trouble:
                    log("error", "a store could not be closed: it raised %s", type(trouble).__name__)  # its text may hold secrets
            self._vouching.close()
            self.asking.close()
            self.leave()
            over.tell(None)

        try:
            in_background(let_go)
        except RuntimeError:  # here it may hang, but nobody would do it later
            let_go()
        return over

    def leave(self) -> None:
        """Another client may have the store."""
        _serving.pop(id(self._store), None)


def _is_sure(vouches: Callable[[], bool]) -> bool:
    try:
        return vouches() is True
    except BaseException as trouble:
        log("error", "a store could not say whether its claims stand: it raised %s", type(trouble).__name__)
        return False


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
