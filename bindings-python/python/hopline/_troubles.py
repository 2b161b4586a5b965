"""The messages of a failing store, to be added to the error that follows. A lock is held around every call."""

from __future__ import annotations

from typing import Any

from ._store_handle import Call
from ._values import loads

_MOST = 64


class Troubles:
    """By the names of the call."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def note(self, call: Call, trouble: str | None) -> None:
        """Takes the outcome of a call of the store; without a trouble it was done."""
        names = call[1] if call[0] in ("claim", "release") else [call[1]]
        for name in names or ():
            if trouble is not None or call[0] in ("claim", "list"):  # a claim begins anew
                self._said.pop(name, None)
            if trouble is not None:
                self._said[name] = trouble
        while len(self._said) > _MOST:
            del self._said[next(iter(self._said))]

    def behind(self, failure: str) -> list[str]:
        """Returns the store's messages, if they are the cause of a command's failure."""
        error: dict[str, Any] = loads(failure) if self._said else {}
        while error and error.get("kind") != "store":
            error = error.get("cause") or {}
        if not error:
            return []
        record = error.get("record")
        # A record id is a name and its version.
        trouble = next(reversed(self._said.values())) if record is None else self._said.get(record.rpartition(".")[0])
        return [] if trouble is None else [f"the store said: {trouble}"]
