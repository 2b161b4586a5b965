"""Stores as somebody may write them: names in memory, which the clients of one process share."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import hopline

DAY = 24 * 3600


@dataclass
class Record:
    data: bytes
    until: float | None


class Memory:
    """The data that the stores of all clients share."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.lock = threading.RLock()
        self.records: dict[str, Record] = {}
        self.owners: dict[str, "MemoryStore"] = {}
        self.days: dict[str, int] = {}
        self.spent: dict[tuple[str, int, str], Decimal] = {}
        self.clock = clock

    def record(self, name: str) -> Record | None:
        """The data that is there, without that which was to be kept no longer."""
        record = self.records.get(name)
        if record is not None and record.until is not None and record.until < self.clock() and name not in self.owners:
            del self.records[name]
            return None
        return record


class MemoryStore:
    """The store of one client. The file names nothing of Hopline but the types of a store."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | hopline.OwnedElsewhere:
        with self._memory.lock:
            records = {name: self._memory.record(name) for name in names}
            own = [name for name in records if self._memory.owners.get(name) is self]
            free = [name for name in records if name not in self._memory.owners]
            free.sort(key=lambda name: records[name] is None)
            got = own + free[: max(most - len(own), 0)]
            if not got:
                record = next((record for record in records.values() if record is not None), None)
                return hopline.OwnedElsewhere(record and record.data)
            self._memory.owners.update(dict.fromkeys(got, self))
            return {name: record.data if (record := records[name]) else None for name in got}

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        with self._memory.lock:
            there, owner = self._memory.record(name), self._memory.owners.get(name)
            if owner is not self and not (new and owner is None and there is None):
                return False
            self._memory.records[name] = Record(data, None if keep_for is None else self._memory.clock() + keep_for)
            self._memory.owners[name] = self
            if release:
                del self._memory.owners[name]
            return True

    def delete(self, name: str, /) -> bool:
        with self._memory.lock:
            if self._memory.owners.get(name) is not self:
                return self._memory.record(name) is None
            self._memory.records.pop(name, None)
            del self._memory.owners[name]
            return True

    def release(self, names: Sequence[str] | None, /) -> None:
        with self._memory.lock:
            own = [name for name, owner in self._memory.owners.items() if owner is self]
            for name in own:
                if names is None or name in names:
                    del self._memory.owners[name]

    def list(self, space: str, /, *, after: str | None, open: bool) -> hopline.StoredPage:
        with self._memory.lock:
            found = []
            for name in sorted(self._memory.records):
                record, owner = self._memory.record(name), self._memory.owners.get(name)
                if record and name.startswith(f"{space}.") and (after is None or name > after) and not (open and record.until is not None):
                    found.append(hopline.StoredName(name, record.data, "free" if owner is None else "mine" if owner is self else "other"))
            return hopline.StoredPage(found[:500], len(found) > 500)

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | hopline.OverCap:
        with self._memory.lock:
            today = self._memory.days[space] = max(self._memory.days.get(space, 0), int(self._memory.clock() // DAY))
            day = today if day is None else day
            spent = {other: usd for (of, on, other), usd in self._memory.spent.items() if (of, on) == (space, day)}
            total, before = sum(spent.values(), Decimal(0)), spent.get(entry, Decimal(0))
            if cap is not None and amount > before and total - before + amount > cap:
                return hopline.OverCap(total, day)
            self._memory.spent[(space, day, entry)] = amount
            self._memory.days[space] = max(today, day)
            return day

    def close(self) -> None:
        self.release(None)


class LeasedMemoryStore(MemoryStore):
    """One whose claims end when a test says so."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.is_sure = True
        self.asked = 0
        self.lost: hopline.Lost | None = None

    def on_lost(self, lost: hopline.Lost, /) -> None:
        assert self.lost is None, "it is told once"
        self.lost = lost

    def vouches(self) -> bool:
        self.asked += 1
        return self.is_sure

    def end_claims(self, *names: str) -> None:
        """The claims of these names end, or all, and the client hears of it."""
        self.release(names or None)
        if self.lost is not None:
            self.lost(*([names] if names else []))
