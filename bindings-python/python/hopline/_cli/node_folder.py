"""Opens a folder of Hopline for Node, so that the command works over it, too. `bindings-wasm/js/src/folder.js` and `owner.js` define the
format, and Node sweeps it.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from hopline import OverCap, OwnedElsewhere, StoredName, StoredPage, StoreNotOpened

FORMAT = "hopline folder of Node 2\n"
_PAGE = 500
_DAY_MS = 24 * 60 * 60 * 1000
_DAYS_KEPT = 40
_PATIENCE = 10
_LONGEST = 103
"""The longest path that every system takes for a socket, in bytes."""
_GONE = {errno.ECONNREFUSED, errno.ENOENT, errno.ENOTDIR}
"""The errors of a connection where no process listens. Any other error is no sign of death."""
_NOBODY = "nobody"
"""The holder of a claim that can't be read, as after a power cut."""


def is_one(path: str) -> bool:
    """Returns true if a folder has this format."""
    try:
        return Path(path, "format").read_text() == FORMAT
    except (OSError, UnicodeDecodeError):
        return False


class _Record(NamedTuple):
    data: bytes
    until: float | None


class _Look(NamedTuple):
    name: str
    whose: str
    record: _Record | None


class NodeFolder:
    """A store of one client, beside clients of Node's in other processes. Its calls take turns."""

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = Path(path).absolute(), clock
        self._owner: _Owner | None = None
        self._owned: set[str] = set()
        self._lock = threading.RLock()

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | OwnedElsewhere:
        """Claims names as `hopline.Store` says: first those that are this client's, then those with data."""
        with self._opened() as owner:
            looks = [self._look(owner, name) for name in names]
            ranked = sorted((look for look in looks if look.whose != "other"), key=_rank)
            claimed: dict[str, bytes | None] = {}
            for look in ranked:
                if len(claimed) == most:
                    break
                is_ours, data = self._claim(owner, look.name)
                if is_ours:
                    claimed[look.name] = data
            if claimed:
                return claimed
            return OwnedElsewhere(next((record.data for record in map(self._read, names) if record is not None), None))

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        """Stores data so that it survives a power cut."""
        with self._opened() as owner:
            if not self._owns(owner, name) and not (new and self._begins(owner, name)):
                return False
            self._write(owner, name, data, keep_for)
            if release:
                self._release(name)
            return True

    def delete(self, name: str, /) -> bool:
        """Deletes a name of this client."""
        with self._opened() as owner:
            if not self._owns(owner, name):
                return self._look(owner, name).record is None
            # The part that counts is deleted last.
            for part in ("open", "kept"):
                self._remove(part, name)
            self._release(name)
            return True

    def release(self, names: Sequence[str] | None, /) -> None:
        """Releases names, or all."""
        with self._lock:
            # A client that never opened the folder owns nothing in it.
            if (owner := self._owner) is not None:
                for name in list(self._owned if names is None else names):
                    if self._owns(owner, name):
                        self._release(name)

    def list(self, space: str, /, *, after: str | None, open: bool) -> StoredPage:
        """Lists the names of a space."""
        with self._opened() as owner:
            parts = ["open"] if open else ["open", "kept"]
            known = {name for part in parts for name in os.listdir(self._path / part)}
            names = sorted(name for name in known if name.startswith(f"{space}.") and (after is None or name > after))
            entries: list[StoredName] = []
            for name in names:
                if len(entries) > _PAGE:
                    break
                look = self._look(owner, name)
                if look.record is not None and not (open and look.record.until is not None):
                    entries.append(StoredName(name, look.record.data, look.whose))  # type: ignore[arg-type]
            return StoredPage(entries[:_PAGE], len(entries) > _PAGE)

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | OverCap:
        """Counts an amount under a cap, alone among all clients."""
        place = f"days.{space}"
        with self._opened() as owner:
            claim = self._path / "claims" / place
            until = time.monotonic() + _PATIENCE
            while owner.take(claim) != owner.id:
                if time.monotonic() > until:
                    raise OSError(f"another client counts in `{claim}` for too long")
                time.sleep(0.002 + random.random() / 100)
            try:
                return self._spend(owner, space, entry, amount, day, cap)
            finally:
                claim.unlink(missing_ok=True)

    def close(self) -> None:
        """Releases everything."""
        with self._lock:
            self.release(None)
            if (owner := self._owner) is not None:
                self._owner = None
                owner.end()

    @contextmanager
    def _opened(self) -> Iterator[_Owner]:
        with self._lock:
            if self._owner is None:
                if not hasattr(socket, "AF_UNIX"):
                    raise StoreNotOpened("a folder of Hopline for Node can't be opened by Python on this system")
                if not is_one(str(self._path)):
                    raise StoreNotOpened(f"`{self._path}` is not a folder of Hopline for Node")
                try:
                    self._owner = _Owner(self._path / "owners")
                except OSError as error:
                    raise StoreNotOpened(str(error)) from error
            yield self._owner

    def _look(self, owner: _Owner, name: str) -> _Look:
        """The data of a name, and its owner. Data without an owner counts as missing once its time is over."""
        holder = _holder(self._path / "claims" / name)
        whose = "mine" if holder == owner.id else "other" if holder is not None and owner.is_alive(holder) else "free"
        record = self._read(name)
        return _Look(name, whose, None if record is not None and whose == "free" and self._is_over(record) else record)

    def _is_over(self, record: _Record) -> bool:
        return record.until is not None and record.until <= self._now_ms()

    def _now_ms(self) -> float:
        return self._clock() * 1000

    def _owns(self, owner: _Owner, name: str) -> bool:
        return _holder(self._path / "claims" / name) == owner.id

    def _claim(self, owner: _Owner, name: str) -> tuple[bool, bytes | None]:
        was_ours = self._owns(owner, name)
        if owner.take(self._path / "claims" / name) != owner.id:
            return False, None
        self._owned.add(name)
        record = self._read(name)
        if record is None or was_ours or not self._is_over(record):
            return True, None if record is None else record.data
        for part in ("open", "kept"):
            self._remove(part, name)
        return True, None

    def _begins(self, owner: _Owner, name: str) -> bool:
        """Claims a name that is not there."""
        is_ours, data = self._claim(owner, name)
        if is_ours and data is not None:
            self._release(name)
        return is_ours and data is None

    def _release(self, name: str) -> None:
        (self._path / "claims" / name).unlink(missing_ok=True)
        self._owned.discard(name)

    def _read(self, name: str) -> _Record | None:
        kept = _bytes(self._path / "kept" / name)
        if kept is None:
            data = _bytes(self._path / "open" / name)
            return None if data is None else _Record(data, None)
        line, _, data = kept.partition(b"\n")
        # Damaged data is returned as it is, and never dropped.
        return _Record(data, int(line)) if re.fullmatch(rb"\d{1,16}", line) and len(line) < len(kept) else _Record(kept, float("inf"))

    def _write(self, owner: _Owner, name: str, data: bytes, keep_for: float | None) -> None:
        draft = owner.folder / name
        if keep_for is None:
            _durably(draft, data)
            draft.rename(self._path / "open" / name)
            _flush(self._path / "open")
            # Data that is kept for a time counts as long as it is there, so the old data stays until the new is in its place.
            self._remove("kept", name)
            return
        until = max(0, int(self._now_ms() + keep_for * 1000))
        _durably(draft, b"%d\n" % until + data)
        day = self._path / "until" / str(until // _DAY_MS)
        day.mkdir(mode=0o700, exist_ok=True)
        (day / name).touch(mode=0o600)
        draft.rename(self._path / "kept" / name)
        _flush(self._path / "kept")
        (self._path / "open" / name).unlink(missing_ok=True)

    def _remove(self, part: str, name: str) -> None:
        with suppress(FileNotFoundError):
            (self._path / part / name).unlink()
            _flush(self._path / part)

    def _spend(self, owner: _Owner, space: str, entry: str, amount: Decimal, given: int | None, cap: Decimal | None) -> int | OverCap:
        folder = self._path / "days"
        days = [int(name.removeprefix(f"{space}.")) for name in os.listdir(folder) if name.startswith(f"{space}.")]
        today = max([int(self._now_ms() // _DAY_MS), *days])
        day = today if given is None else given
        entries: dict[str, str] = json.loads(_bytes(folder / f"{space}.{day}") or b"{}")
        before, total = Decimal(entries.get(entry, "0")), sum(map(Decimal, entries.values()), Decimal(0))
        if cap is not None and amount > before and total - before + amount > cap:
            return OverCap(total, day)
        draft = owner.folder / f"days.{space}"
        _durably(draft, json.dumps({**entries, entry: f"{amount:f}"}).encode())
        draft.rename(folder / f"{space}.{day}")
        _flush(folder)
        for old in days:
            if old < today - _DAYS_KEPT:
                (folder / f"{space}.{old}").unlink(missing_ok=True)
        return day


class _Owner:
    """One opening of a folder. It lives as long as a process listens on the socket in its folder. A claim is a hard link to a file that holds
    its owner's id: there is one, or there is none, and never one without an id.
    """

    def __init__(self, owners: Path) -> None:
        self.id = os.urandom(8).hex()
        self._owners = owners
        self.folder = owners / self.id
        self._files = 0
        self.folder.mkdir(mode=0o700)
        self._server = socket.socket(socket.AF_UNIX)
        try:
            with self._address(self.id) as address:
                self._server.bind(address)
            # Nobody accepts: a guest needs no more than the connection, and a full queue is no sign of death.
            self._server.listen(128)
            self._next_file()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Dies."""
        self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def take(self, path: Path) -> str:
        """Makes a claim this owner's unless another living one has it, and returns the id of its owner then."""
        while True:
            if self._link(path):
                return self.id
            holder = _holder(path)
            if holder is None:
                continue
            if holder == self.id or self.is_alive(holder):
                return holder
            # Of all clients that see that it is gone, only the one that has the marker may take its place.
            marker = path.with_name(f"{path.name}~{holder}")
            first = self.take(marker)
            if first != self.id:
                return first
            if _holder(path) == holder:
                marker.rename(path)
                return self.id
            marker.unlink(missing_ok=True)

    def is_alive(self, owner: str) -> bool:
        """Returns true if an owner lives."""
        if owner == _NOBODY:
            return False
        try:
            with self._address(owner) as address, socket.socket(socket.AF_UNIX) as guest:
                guest.setblocking(False)
                guest.connect(address)
        except OSError as error:
            return error.errno not in _GONE
        return True

    @contextmanager
    def _address(self, owner: str) -> Iterator[str]:
        """The path of an owner's socket, in a form that is short enough."""
        path = self._owners / owner / "socket"
        if len(os.fsencode(path)) <= _LONGEST:
            yield str(path)
            return
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            yield f"/proc/self/fd/{folder}/socket"
        finally:
            os.close(folder)

    def _link(self, path: Path) -> bool:
        try:
            path.hardlink_to(self._file)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            self._next_file()
            return self._link(path)
        return True

    def _next_file(self) -> None:
        self._file = self.folder / f"id.{self._files}"
        self._files += 1
        _private(self._file, self.id.encode())


def _rank(look: _Look) -> int:
    return 0 if look.whose == "mine" else 1 if look.record is not None else 2


def _holder(path: Path) -> str | None:
    held = _bytes(path)
    return None if held is None else held.decode() if re.fullmatch(rb"[0-9a-f]{16}", held) else _NOBODY


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _private(path: Path, data: bytes) -> None:
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)


def _durably(path: Path, data: bytes) -> None:
    """Writes a file, and waits until it is on the disk."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    """Flushes a folder, which keeps the names of its files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
