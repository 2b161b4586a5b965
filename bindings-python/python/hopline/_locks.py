"""Names that one process at a time may hold, by the operating system's locks on the bytes of one file.

A name stands for a byte of the file, far beyond its end. All names of a process are held through one descriptor, so the
system frees them together when the process dies. A process that was forked holds none of its parent's.
"""

import errno
import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Locks:
    """The names that this process holds in one file."""

    _known: dict[str, "Locks"] = {}
    _guard = threading.RLock()
    """Reentrant, since the garbage collector may close a dropped client while this thread holds it."""

    def __init__(self, path: Path) -> None:
        self._pid = os.getpid()
        # Never closed: to close any descriptor of the file would free what others in this process hold.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        self._held: set[int] = set()
        self._scan = threading.Lock()

    @classmethod
    def of(cls, path: Path) -> "Locks":
        """The locks of a file, one object a process."""
        with cls._guard:
            name = os.path.realpath(path)
            known = cls._known.get(name)
            if known is None or known._pid != os.getpid() or not known._lives(path):
                known = cls._known[name] = Locks(path)
            return known

    @classmethod
    def _forget(cls) -> None:
        """Of a child of a fork: it holds nothing of its parent's, and a thread that held the guard is not there any more."""
        cls._known, cls._guard = {}, threading.RLock()

    def _lives(self, path: Path) -> bool:
        """Whether the file is still there, and not another one of its name."""
        try:
            here, there = os.fstat(self._file), os.stat(path)
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)

    @contextmanager
    def scanning(self) -> Iterator[None]:
        """One process at a time looks for names that nobody holds. To look is to take for a moment, and whoever takes a
        name for good must not find it taken by somebody who only looks."""
        with self._scan:
            _wait(self._file, _SCAN)
            try:
                yield
            finally:
                _unlock(self._file, _SCAN)

    def take(self, name: str) -> bool:
        """Takes a name, unless somebody holds it, in this process or another."""
        with self._guard:
            place = _place(name)
            if place in self._held or not _lock(self._file, place):
                return False
            self._held.add(place)
            return True

    def give(self, name: str) -> None:
        """Gives a name back."""
        with self._guard:
            place = _place(name)
            self._held.discard(place)
            _unlock(self._file, place)

    def is_taken(self, name: str) -> bool:
        """Whether somebody holds a name. Only to be asked while `scanning`."""
        if not self.take(name):
            return True
        self.give(name)
        return False


_SCAN = 0
_FREE_ERRORS = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Locks._forget)

if sys.platform == "win32":
    import msvcrt

    def _place(name: str) -> int:
        return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 2) + 1

    def _wait(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)

    def _lock(file: int, place: int) -> bool:
        os.lseek(file, place, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _FREE_ERRORS:
                return False
            raise
        return True

    def _unlock(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _place(name: str) -> int:
        return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) >> 2) + 1

    def _wait(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, place)

    def _lock(file: int, place: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            if error.errno in _FREE_ERRORS:
                return False
            raise
        return True

    def _unlock(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
