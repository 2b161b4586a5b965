"""Where records are kept, so that a crash loses nothing and a job that is run again buys nothing twice."""

import os
import re
import secrets
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from ._locks import Locks

_RECORD = re.compile("[0-9a-f]{32}-r[0-9]+")
"""How records are named. Other files of the folder are somebody else's."""


class Shelf(Protocol):
    """A store as one client has it. What a client claims, no other living client of the store has."""

    blocking: bool
    """Whether its methods wait for a disk."""

    def keep(self, record: str, data: bytes | None) -> None:
        """Keeps a record so that it survives a crash, or deletes it (`None`). Raises `OSError` unless that is certain, and if another
        living client has the record."""

    def names(self) -> list[str]:
        """The names of all records but this client's own."""

    def read(self, record: str) -> bytes | None:
        """A record, whoever has it; `None` if there is none of this name."""

    def scanning(self) -> AbstractContextManager[None]:
        """Held while free records are looked for and claimed, by one client of the store at a time."""

    def free(self) -> list[tuple[str, bytes]]:
        """The records that no living client has."""

    def claim(self, record: str) -> bytes | None:
        """Makes a record this client's and reads it; `None` if a client has it, this one included, or it is gone."""

    def release(self, record: str) -> None:
        """Gives a record back, as it is. One that this client does not have stays with whoever has it."""

    def claim_intent(self, intent: str) -> bool:
        """Makes an intent this client's; whether no other living client has it."""

    def release_intent(self, intent: str) -> None:
        """Gives an intent back."""

    def close(self) -> None:
        """Gives everything back. The garbage collector may call it in any thread, if the client was dropped and not closed."""


class Store(Protocol):
    """A store that several clients may share."""

    def open(self) -> Shelf:
        """The store for one more client."""


class MemoryStore:
    """Records in memory. Clients of one process can share them; they end with the process."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._claims: dict[tuple[str, str], object] = {}
        self._lock = threading.RLock()

    def open(self) -> Shelf:
        """The store for one more client."""
        return _MemoryShelf(self)


class _MemoryShelf:
    blocking = False

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._own: set[tuple[str, str]] = set()

    def keep(self, record: str, data: bytes | None) -> None:
        with self._store._lock:
            if not self._claim("record", record):
                raise _taken(record)
            if data is None:
                self._store._records.pop(record, None)
                self.release(record)
            else:
                self._store._records[record] = data

    def names(self) -> list[str]:
        with self._store._lock:
            return [record for record in self._store._records if ("record", record) not in self._own]

    def read(self, record: str) -> bytes | None:
        return self._store._records.get(record)

    def scanning(self) -> AbstractContextManager[None]:
        return nullcontext()

    def free(self) -> list[tuple[str, bytes]]:
        with self._store._lock:
            return [(record, data) for record, data in self._store._records.items() if ("record", record) not in self._store._claims]

    def claim(self, record: str) -> bytes | None:
        with self._store._lock:
            if ("record", record) in self._own or (data := self._store._records.get(record)) is None:
                return None
            return data if self._claim("record", record) else None

    def release(self, record: str) -> None:
        self._release("record", record)

    def claim_intent(self, intent: str) -> bool:
        return self._claim("intent", intent)

    def release_intent(self, intent: str) -> None:
        self._release("intent", intent)

    def close(self) -> None:
        for kind, name in list(self._own):
            self._release(kind, name)

    def _claim(self, kind: str, name: str) -> bool:
        with self._store._lock:
            if self._store._claims.setdefault((kind, name), self) is not self:
                return False
            self._own.add((kind, name))
            return True

    def _release(self, kind: str, name: str) -> None:
        with self._store._lock:
            if (kind, name) in self._own:
                self._own.discard((kind, name))
                del self._store._claims[(kind, name)]


class FolderStore:
    """Records as files in a folder that any number of clients and processes of one machine may share.

    A record belongs to the client that made it for as long as its process lives; the operating system's locks say so. After
    a crash it is free, and the next client takes it up: by its intent, its name, or with `resume_all`. An intent that one
    living client has is refused to every other, so that it buys once among all of them.

    Records hold no secrets. Never restore the folder from a backup: an older record would forget what was bought since.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        """The folder. It is made when the first client opens it."""

    def open(self) -> Shelf:
        """The store for one more client."""
        self.path.mkdir(parents=True, exist_ok=True)
        shelf = _FolderShelf(self.path)
        shelf.check()
        return shelf


class _FolderShelf:
    blocking = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._locks = Locks.of(path / ".locks")
        self._own: set[str] = set()

    def check(self) -> None:
        """Whether records could be kept, found out before anything is bought. Half-written ones of the dead are swept out."""
        drafts = [path for path in self._path.glob("*.draft") if _RECORD.fullmatch(path.stem)]
        if drafts:
            with self.scanning():
                for draft in drafts:
                    if not self._locks.is_taken(f"record {draft.stem}"):
                        draft.unlink(missing_ok=True)
        probe = self._path / f".probe-{secrets.token_hex(8)}"
        try:
            probe.write_bytes(b"")
        finally:
            probe.unlink(missing_ok=True)

    def keep(self, record: str, data: bytes | None) -> None:
        if data is None:
            return self._delete(record)
        # Before the file is there, so that nobody ever finds it free.
        if not self._claim(f"record {record}"):
            raise _taken(record)
        path = self._file(record)
        draft = path.with_suffix(".draft")
        with open(draft, "wb", opener=_for_us_alone) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        self._sync()

    def _delete(self, record: str) -> None:
        is_own = f"record {record}" in self._own
        # One that was refused is not this client's, and another client may look at it or have it by now.
        with nullcontext() if is_own else self.scanning():
            if not self._claim(f"record {record}"):
                raise _taken(record)
        try:
            self._file(record).unlink(missing_ok=True)
            self._sync()
        except OSError:
            if not is_own:
                self.release(record)
            raise
        self.release(record)

    def names(self) -> list[str]:
        found = sorted(name.removesuffix(".json") for name in os.listdir(self._path) if name.endswith(".json"))
        return [name for name in found if _RECORD.fullmatch(name) and f"record {name}" not in self._own]

    def read(self, record: str) -> bytes | None:
        # A name that somebody typed must not lead out of the folder.
        if not _RECORD.fullmatch(record):
            return None
        try:
            return self._file(record).read_bytes()
        except FileNotFoundError:
            return None  # its client has just deleted it

    def scanning(self) -> AbstractContextManager[None]:
        return self._locks.scanning()

    def free(self) -> list[tuple[str, bytes]]:
        free = [name for name in self.names() if not self._locks.is_taken(f"record {name}")]
        return [(name, data) for name in free if (data := self.read(name)) is not None]

    def claim(self, record: str) -> bytes | None:
        if f"record {record}" in self._own:
            return None
        data = None
        try:
            if self._claim(f"record {record}"):
                data = self.read(record)
            return data
        finally:
            if data is None:
                self.release(record)

    def release(self, record: str) -> None:
        self._release(f"record {record}")

    def claim_intent(self, intent: str) -> bool:
        return self._claim(f"intent {intent}")

    def release_intent(self, intent: str) -> None:
        self._release(f"intent {intent}")

    def close(self) -> None:
        for name in list(self._own):
            self._release(name)

    def _file(self, record: str) -> Path:
        return self._path / f"{record}.json"

    def _claim(self, name: str) -> bool:
        if name not in self._own and not self._locks.take(name):
            return False
        self._own.add(name)
        return True

    def _release(self, name: str) -> None:
        if name in self._own:
            self._own.discard(name)
            self._locks.give(name)

    def _sync(self) -> None:
        # On Unix the names in a folder are kept by the folder itself; Windows can't open one as a file.
        if os.name == "posix":
            folder = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _taken(record: str) -> OSError:
    return OSError(f"the record {record} belongs to another client")
