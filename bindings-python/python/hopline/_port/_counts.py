"""The counts of a port: connections and bytes, in all and by exit."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ._exits import Exit

_EXITS = 100
"""So many exits are shown, those that were used last."""


class Counts:
    """The counts of a port since it was opened."""

    def __init__(self) -> None:
        self.connections = self.refused = self.bytes_sent = self.bytes_received = 0
        self._exits: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()

    def begun(self, one: Exit) -> None:
        """A connection was made through an exit."""
        self.connections += 1
        self._of(one)["connections"] += 1

    def failed(self, one: Exit) -> None:
        """An exit failed before there was a connection."""
        self._of(one)["failures"] += 1

    def sent(self, one: Exit, size: int) -> None:
        """So many bytes went to the target."""
        self.bytes_sent += size
        self._of(one)["bytes_sent"] += size

    def received(self, one: Exit, size: int) -> None:
        """So many bytes came from the target."""
        self.bytes_received += size
        self._of(one)["bytes_received"] += size

    def told(self) -> dict[str, Any]:
        """All of it, the exit that was used last first."""
        sums = {"connections": self.connections, "refused": self.refused, "bytes_sent": self.bytes_sent, "bytes_received": self.bytes_received}
        return {**sums, "exits": [dict(one) for one in reversed(self._exits.values())]}

    def _of(self, one: Exit) -> dict[str, Any]:
        name = (one.session_id or "", one.generation)
        found = self._exits.get(name)
        if found is None:
            shown = {"session_id": one.session_id, "generation": one.generation}
            found = self._exits[name] = {**shown, "connections": 0, "failures": 0, "bytes_sent": 0, "bytes_received": 0}
            if len(self._exits) > _EXITS:
                self._exits.popitem(last=False)
        self._exits.move_to_end(name)
        return found
