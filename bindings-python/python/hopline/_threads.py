"""Threads that wait for a store or an HTTP client in place of others. None of them keeps a program from ending."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ._log import log


def in_background(work: Callable[[], object], name: str = "hopline-store") -> None:
    """Runs work in a thread of its own. Raises `RuntimeError` if there can be no more threads, as in an ending interpreter."""
    _start(threading.Thread(target=work, name=name, daemon=True))


def _start(thread: threading.Thread) -> None:
    # Before Python 3.12 an ending interpreter waits forever for a thread that it does not let begin.
    if sys.is_finalizing():
        raise RuntimeError("the interpreter ends")
    thread.start()


class Threads:
    """A limited number of threads, for work that may hang. They begin as they are needed, and keep no client alive."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._threads = self._unfinished = 0

    def submit(self, work: Callable[[], object]) -> None:
        """Runs work meanwhile. Raises `RuntimeError` if there can be no thread for it."""
        with self._lock:
            if self._threads <= self._unfinished and self._threads < self._most:
                try:
                    queue = self._queue
                    in_background(lambda: _serve(queue))
                    self._threads += 1
                except RuntimeError:
                    if self._threads == 0:
                        raise
            self._unfinished += 1
            self._queue.put(lambda: self._finish(work))

    def _finish(self, work: Callable[[], object]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._unfinished -= 1

    def close(self) -> None:
        """Lets the threads end."""
        with self._lock:
            self._queue.put(None)
            self._queue, self._threads = SimpleQueue(), 0

    def __del__(self) -> None:
        # Without the lock, which no other thread can want any more: a child of a fork may have inherited it taken.
        self._queue.put(None)


def _serve(queue: SimpleQueue[Callable[[], object] | None]) -> None:
    while (work := queue.get()) is not None:
        try:
            work()
        except BaseException as trouble:  # the thread is there for others, too
            log("error", "work in a thread of Hopline failed: it raised %s", type(trouble).__name__)
        del work
    queue.put(None)  # for the next thread: an interrupt may have kept one from being counted


_LINGER, _MISSED = 10.0, 6
"""The seconds of an idle thread, and how many times that a thread waits for work that a caller was about to give it."""
_Works = SimpleQueue[Callable[[], object]]
_idle: deque[_Works] = deque()
"""The queues of the idle threads; the last one first, since it is still warm."""


def in_warm_thread(work: Callable[[], object]) -> None:
    """Runs work in a thread that may have worked before: a new one costs several times as much. Raises `RuntimeError` if there can be no
    more threads.
    """
    try:
        _idle.pop().put(work)
    except IndexError:
        works = _Works()
        works.put(work)
        # The arguments of a thread live as long as it does: they hold no work, and so no client.
        _start(threading.Thread(target=_linger, args=(works,), name="hopline-send", daemon=True))


def _linger(works: _Works) -> None:
    missed = 0
    while True:
        try:
            work = works.get(timeout=_LINGER)
        except Empty:
            try:
                return _idle.remove(works)
            except ValueError:  # a caller has just taken it; if that one was interrupted, no work comes
                missed += 1
                if missed == _MISSED:
                    return None
                continue
        missed = 0
        work()
        del work
        _idle.append(works)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
