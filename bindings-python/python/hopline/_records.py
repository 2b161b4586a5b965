"""The records of one client: what its store keeps, what it holds, what it may take up."""

import json
import logging
import secrets
from collections.abc import Callable
from typing import NamedTuple

from . import _hopline
from ._errors import Busy, HoplineError, StoreError
from ._facts import Rejected, Saved
from ._store import Shelf, Store
from ._values import Secret, loads
from ._work import Save

_log = logging.getLogger("hopline")


def new_core(options: Secret) -> _hopline.Client:
    """A client core, with entropy of its own."""
    made = _made(options)
    if isinstance(made, HoplineError):
        raise made
    return made


def _made(options: Secret) -> _hopline.Client | HoplineError:
    try:
        return _hopline.Client(options.reveal(), secrets.token_bytes(16))
    except ValueError as error:
        return HoplineError._parse(str(error))


class _Known(NamedTuple):
    """What the name of a record stands for. It never changes."""

    intent: str | None = None
    is_total: bool = False
    """Whether it says what was spent in a day."""
    is_damaged: bool = False
    """Whether it can't be read, so that it may belong to any intent."""

    def concerns(self, intent: str, capped: bool) -> bool:
        """Whether the core has to know of it before it starts something under an intent."""
        return self.intent == intent or self.is_damaged or (self.is_total and capped)


class Records:
    """The store as one client has it. Whatever reads the store does so without the engine's lock."""

    def __init__(self, options: Secret, store: Store, same_account: bool, capped: bool) -> None:
        self._options = options
        self._capped = capped
        self._same_account = same_account
        self._intents: set[str] = set()
        self._known: dict[str, _Known] = {}
        self._claimed: dict[str, bytes] = {}
        """What the core does not have yet."""
        self._kept_under: dict[str, str] = {}
        """The intents of this client's own records."""
        self._loose: set[str] = set()
        """Intents of this client that may have nothing held under them any more."""
        try:
            self.shelf: Shelf = store.open()
        except OSError as error:
            raise _unusable(error) from None

    def keep(self, work: Save) -> OSError | None:
        """Gives a record to the store."""
        try:
            self.shelf.keep(work.record, work.data)
        except OSError as error:
            return error
        except Exception as error:  # a store of the caller's own
            return OSError(type(error).__name__)
        return None

    def free(self) -> tuple[list[Saved], list[Rejected]]:
        """The free records, as a core that is asked nothing else reads them: what they hold, and which it refuses."""
        try:
            with self.shelf.scanning():
                records = self.shelf.free()
        except OSError as error:
            raise _unusable(error) from None
        if not records:
            return [], []
        reader = new_core(self._options)
        refused = loads(reader.restore(records, self._same_account))["refused"]
        return Saved._parse(reader.saved_list()), [Rejected(**one) for one in refused]

    def is_gone(self, record: str) -> bool:
        """Whether the store has no such record."""
        try:
            return self.shelf.read(record) is None
        except OSError as error:
            raise _unusable(error) from None

    # Taking records up, by one thread at a time. Whatever comes of it, `give_back` is to be called after it.

    def claim_intent(self, operation: str, intent: str) -> None:
        """Makes an intent this client's, with the records of earlier clients under it. Of the store only names are read that this
        client has not seen yet."""
        try:
            if not self._claim_intent(intent):
                raise _busy(operation, intent)
            concerned = {name: one for name, one in self._learn().items() if one.concerns(intent, self._capped)}
            self._claim(list(concerned))
            for name, one in concerned.items():
                if one.is_total or name in self._claimed or (data := self.shelf.read(name)) is None:
                    continue
                # Somebody else has it, and the core has to know what was done under the intent.
                if one.intent == intent:
                    raise _busy(operation, intent)
                # A record that can't be read is locked by each who starts something. The core refuses it, whoever has it.
                self._claimed[name] = data
        except OSError as error:
            raise _unusable(error) from None

    def take_totals(self) -> None:
        """What clients that have ended spent in a day."""
        try:
            self._claim([name for name, one in self._learn().items() if one.is_total])
        except OSError as error:
            raise _unusable(error) from None

    def take_up(self, record: str) -> None:
        """One record, if nobody has it."""
        try:
            if (data := self.shelf.read(record)) is not None:
                self._claim_with_intents([(record, _known(data))])
        except OSError as error:
            raise _unusable(error) from None

    def take_up_all(self) -> None:
        """Every record that nobody has."""
        try:
            self._claim_with_intents(list(self._learn().items()))
        except OSError as error:
            raise _unusable(error) from None

    def _learn(self) -> dict[str, _Known]:
        """What the names in the store stand for, this client's own left out."""
        known = {}
        for name in self.shelf.names():
            if (one := self._known.get(name)) is not None:
                known[name] = one
            elif (data := self.shelf.read(name)) is not None:
                known[name] = _known(data)
        self._known = known
        return known

    def _claim_with_intents(self, found: list[tuple[str, _Known]]) -> None:
        wanted = [one for one in found if not one[1].is_total or self._capped]
        self._claim([name for name, one in wanted if one.intent is None or self._claim_intent(one.intent)])

    def _claim(self, names: list[str]) -> None:
        if not names:
            return
        # Read anew, now that nobody else can change them.
        with self.shelf.scanning():
            for name in names:
                if (data := self.shelf.claim(name)) is not None:
                    self._claimed[name] = data

    def _claim_intent(self, intent: str) -> bool:
        if not self.shelf.claim_intent(intent):
            return False
        self._intents.add(intent)
        self._loose.add(intent)
        return True

    # Under the engine's lock.

    def restore(self, core: _hopline.Client) -> None:
        """Gives the core what was claimed. What it refuses is to be given back."""
        if not self._claimed:
            return
        for record, data in self._claimed.items():
            self._remember(record, data)
        refused = loads(core.restore(list(self._claimed.items()), self._same_account))["refused"]
        self._claimed = {one["record"]: self._claimed[one["record"]] for one in refused}

    def give_back(self) -> None:
        """Gives back what was claimed and is not the core's: it stays as it was, for the next who asks."""
        while self._claimed:
            record, _ = self._claimed.popitem()
            self._remember(record, None)
            self.shelf.release(record)

    def kept(self, work: Save) -> None:
        """A record was kept, or is gone, and the core knows."""
        self._remember(work.record, work.data)

    def _remember(self, record: str, data: bytes | None) -> None:
        if data is None:
            if (intent := self._kept_under.pop(record, None)) is not None:
                self._loose.add(intent)
        elif record not in self._kept_under and (intent := _known(data).intent) is not None:
            self._kept_under[record] = intent

    def left(self, intent: str | None) -> None:
        """Somebody waits no more for what goes on under an intent."""
        if intent in self._intents:
            self._loose.add(intent)

    def free_intents(self, used: Callable[[str], bool], is_held: Callable[[str], bool]) -> None:
        """Gives the intents back that nobody here waits for and that nothing is held under any more."""
        while self._loose:
            intent = self._loose.pop()
            if intent in self._intents and not used(intent) and not is_held(intent):
                self._intents.discard(intent)
                try:
                    self.shelf.release_intent(intent)
                except Exception:  # a store of the caller's own; the command has its result all the same
                    _log.exception("an intent could not be given back to the store")


def _known(data: bytes) -> _Known:
    """What a record is kept for."""
    try:
        record = json.loads(data)
        intent = record.get("intent")
        return _Known(intent if isinstance(intent, str) else None, "spent" in record)
    except (ValueError, AttributeError, RecursionError):
        return _Known(is_damaged=True)


def said(trouble: OSError) -> str:
    """What a store said, without more of its paths than it must."""
    return trouble.strerror or str(trouble) or type(trouble).__name__


def _busy(operation: str, intent: str) -> Busy:
    what = "another living client of this store has this intent"
    message = f"{operation} `{intent}`: {what}; nothing was changed; wait for the other change to end"
    return Busy(message, operation=operation, intent=intent, what=what, advice="wait_for_other")


def _unusable(error: OSError) -> StoreError:
    what = f"the store can't be used: {said(error)}"
    return StoreError(f"client: {what}; nothing was changed; mend the store", operation="client", what=what, advice="mend_store")
