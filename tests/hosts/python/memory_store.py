"""A store as somebody may write one: names in memory, which the clients of one process share."""

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


class MemoryStore:
    """It says nothing of Hopline but what the types of a store say."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.lock = threading.RLock()
        self.records: dict[str, Record] = {}
        self.owners: dict[str, "MemoryHandle"] = {}
        self.days: dict[str, int] = {}
        self.spent: dict[tuple[str, int, str], Decimal] = {}
        self.clock = clock

    def open(self) -> hopline.StoreHandle:
        return MemoryHandle(self)

    def record(self, name: str) -> Record | None:
        """What is there; what was to be kept no longer is dropped."""
        record = self.records.get(name)
        if record is not None and record.until is not None and record.until < self.clock() and name not in self.owners:
            del self.records[name]
            return None
        return record


class MemoryHandle:
    """The store as one client has it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | hopline.OwnedElsewhere:
        with self._store.lock:
            records = {name: self._store.record(name) for name in names}
            own = [name for name in records if self._store.owners.get(name) is self]
            free = [name for name in records if name not in self._store.owners]
            free.sort(key=lambda name: records[name] is None)
            got = own + free[: max(most - len(own), 0)]
            if not got:
                record = next((record for record in records.values() if record is not None), None)
                return hopline.OwnedElsewhere(record and record.data)
            self._store.owners.update(dict.fromkeys(got, self))
            return {name: record.data if (record := records[name]) else None for name in got}

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        with self._store.lock:
            there, owner = self._store.record(name), self._store.owners.get(name)
            if owner is not self and not (new and owner is None and there is None):
                return False
            self._store.records[name] = Record(data, None if keep_for is None else self._store.clock() + keep_for)
            self._store.owners[name] = self
            if release:
                del self._store.owners[name]
            return True

    def delete(self, name: str, /) -> bool:
        with self._store.lock:
            if self._store.owners.get(name) is not self:
                return self._store.record(name) is None
            self._store.records.pop(name, None)
            del self._store.owners[name]
            return True

    def release(self, names: Sequence[str] | None, /) -> None:
        with self._store.lock:
            own = [name for name, owner in self._store.owners.items() if owner is self]
            for name in own:
                if names is None or name in names:
                    del self._store.owners[name]

    def list(self, space: str, /, *, after: str | None, open: bool) -> hopline.StoredPage:
        with self._store.lock:
            found = []
            for name in sorted(self._store.records):
                record, owner = self._store.record(name), self._store.owners.get(name)
                if record and name.startswith(f"{space}.") and (after is None or name > after) and not (open and record.until is not None):
                    found.append(hopline.StoredName(name, record.data, "free" if owner is None else "mine" if owner is self else "other"))
            return hopline.StoredPage(found[:500], len(found) > 500)

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | hopline.OverCap:
        with self._store.lock:
            today = self._store.days[space] = max(self._store.days.get(space, 0), int(self._store.clock() // DAY))
            day = today if day is None else day
            spent = {other: usd for (of, on, other), usd in self._store.spent.items() if (of, on) == (space, day)}
            total, before = sum(spent.values(), Decimal(0)), spent.get(entry, Decimal(0))
            if cap is not None and amount > before and total - before + amount > cap:
                return hopline.OverCap(total)
            self._store.spent[(space, day, entry)] = amount
            return day

    def close(self) -> None:
        self.release(None)
