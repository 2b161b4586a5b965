"""What is done while nobody waits for a command: a thread that asks a store again which failed, and sees to requests that are still out."""

import threading
import weakref
from typing import TYPE_CHECKING

from ._waiting import wait
from ._work import Ask, Owner, Wait

if TYPE_CHECKING:
    from ._engine import Engine


class Background:
    """One thread at most, for as long as there is something to do. It keeps no client alive that everybody else has dropped."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = weakref.ref(engine)
        self._woken = threading.Event()
        self._runs = False

    def start(self) -> None:
        """Begins, or looks again. The engine's lock is held."""
        self._woken.set()
        if not self._runs:
            try:
                threading.Thread(target=_tend, args=(self._engine, self._woken), name="hopline-store", daemon=True).start()
                self._runs = True
            except RuntimeError:  # the interpreter ends, or there can be no more threads: the next command does it
                return

    def stop(self) -> None:
        """It ends now, and may begin anew. The engine's lock is held."""
        self._runs = False

    def wake(self) -> None:
        """It looks again."""
        self._woken.set()


def _tend(client: "weakref.ref[Engine]", woken: threading.Event) -> None:
    owner = Owner(woken.set)
    # It sends nothing.
    owner.given_up = True
    while True:
        woken.clear()
        engine = client()
        if engine is None:
            return
        work = engine.tend(owner)
        seconds: float | None = 0
        match work:
            case Ask():
                engine.ask_store(owner, work)
            case Wait():
                seconds = work.seconds
            case None:
                if engine.is_to_finish():
                    engine.finish()
                return
        del engine, work
        wait(woken, seconds)
