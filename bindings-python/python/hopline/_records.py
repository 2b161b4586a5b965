"""The records of one client: what its store keeps, what it holds, what it may take up."""

import secrets
from collections.abc import Callable

from . import _hopline
from ._errors import Busy, HoplineError, StoreError
from ._facts import Rejected, Saved
from ._store import Shelf, Store
from ._values import Secret, loads
from ._work import Save


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


class Records:
    """The store as one client has it. The engine's lock is held around all but `keep`."""

    def __init__(self, options: Secret, store: Store, same_account: bool, capped: bool) -> None:
        self._options = options
        self._capped = capped
        self._same_account = same_account
        self._intents: set[str] = set()
        self.loose = False
        """Whether an intent of this client may have nothing held under it any more."""
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
                return self._free()[:2]
        except OSError as error:
            raise _unusable(error) from None

    def _free(self) -> tuple[list[Saved], list[Rejected], list[str]]:
        records = self.shelf.free()
        if not records:
            return [], [], []
        reader = new_core(self._options)
        told = loads(reader.restore(records, self._same_account))
        saved = Saved._parse(reader.saved_list())
        totals = [record for record in told["held"] if all(one.record != record for one in saved)]
        return saved, [Rejected(**one) for one in told["refused"]], totals

    def adopt(self, core: _hopline.Client, wanted: Callable[[Saved], bool]) -> None:
        """Takes up the free records that are wanted, unless another client was quicker. Under a cap, also what was spent."""
        try:
            with self.shelf.scanning():
                found, _, totals = self._free()
                names = totals if self._capped else []
                for saved in found:
                    if wanted(saved) and (saved.intent is None or self._claim_intent(saved.intent)):
                        names.append(saved.record)
                # Read anew, now that nobody else can change them.
                taken = [(name, data) for name in names if (data := self.shelf.claim(name)) is not None]
        except OSError as error:
            raise _unusable(error) from None
        if taken:
            for refused in loads(core.restore(taken, self._same_account))["refused"]:
                self.shelf.release(refused["record"])

    def claim_intent(self, core: _hopline.Client, operation: str, intent: str) -> None:
        """Makes an intent this client's, with the record of an earlier one that is no more."""
        try:
            claimed = self._claim_intent(intent)
        except OSError as error:
            raise _unusable(error) from None
        if not claimed:
            what = "another living client of this store has this intent"
            message = f"{operation} `{intent}`: {what}; nothing was changed; wait for the other change to end"
            raise Busy(message, operation=operation, intent=intent, what=what, advice="wait_for_other")
        self.adopt(core, lambda saved: saved.intent == intent)

    def free_intents(self, core: _hopline.Client, used: set[str | None]) -> None:
        """Gives the intents back that no command uses and that nothing is held under any more."""
        self.loose = False
        if idle := self._intents - used:
            idle.difference_update(saved.intent for saved in Saved._parse(core.saved_list()))
        for intent in idle:
            self._intents.discard(intent)
            self.shelf.release_intent(intent)

    def _claim_intent(self, intent: str) -> bool:
        if not self.shelf.claim_intent(intent):
            return False
        self._intents.add(intent)
        self.loose = True
        return True


def said(trouble: OSError) -> str:
    """What a store said, without more of its paths than it must."""
    return trouble.strerror or str(trouble) or type(trouble).__name__


def _unusable(error: OSError) -> StoreError:
    what = f"the store can't be used: {said(error)}"
    return StoreError(f"client: {what}; nothing was changed; mend the store", operation="client", what=what, advice="mend_store")
