"""Programs that share a pool over a folder, each in a process of its own. Run as a program, this file is one of them: threads that lease
sessions, and write down each lease as it begins and as it ends.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hopline
from canned import until
from hopline import _hopline
from sandbox import Sandbox

SECONDS = float(os.environ.get("HOPLINE_FLEET_SECONDS", "0"))
"""How long each story takes, if longer than in every run."""
SHOP: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "protocol": "http", "daily_cap_usd": 10_000}


@dataclass
class Scraper:
    """One program, as it was told to work."""

    folder: Path
    account: dict[str, str]
    number: int
    threads: int = 1
    work: float = 0.1
    """Seconds for which a lease is out."""
    rest: float = 0.0
    """Seconds between two leases of a thread."""
    timeout: float = 30
    keyed: bool = False
    """True if each thread has a key of its own."""
    every: float = 0.0
    """Seconds from one burst, of a lease of each thread, to the next."""
    after: float = 0.0
    """Seconds until the first burst."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables beside those of this process."""
    options: dict[str, Any] = field(default_factory=dict)
    client: dict[str, Any] = field(default_factory=dict)

    def start(self) -> "Running":
        return Running(self)


@dataclass
class Lent:
    """One lease."""

    session_id: str
    thread: int
    begun: float
    ended: float | None = None


class Running:
    """A program that runs, and what it has written down. Times are those of this machine's monotonic clock."""

    def __init__(self, told: Scraper) -> None:
        self.told, self.started = told, time.monotonic()
        self._written = told.folder / f"scraper-{told.number}-{time.monotonic_ns()}.txt"
        self._written.touch()
        said = {**told.__dict__, "folder": str(told.folder / "records"), "written": str(self._written)}
        self._process = subprocess.Popen([sys.executable, __file__, json.dumps(said)], stdin=subprocess.PIPE, env={**os.environ, **told.environment})

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _lines(self) -> list[list[str]]:
        return [line.split(maxsplit=3) for line in self._written.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def leases(self) -> list[Lent]:
        out: dict[str, Lent] = {}
        leases = []
        for at, word, thread, *rest in self._lines():
            if word == "lent":
                out[thread] = Lent(rest[0].strip(), int(thread), float(at))
                leases.append(out[thread])
            elif word == "back":
                out.pop(thread).ended = float(at)
        return leases

    def unserved(self) -> list[tuple[float, str]]:
        """The callers who got no lease: when, and what they were told."""
        return [(float(at), rest[0].strip()) for at, word, _, *rest in self._lines() if word == "none"]

    def failures(self) -> list[str]:
        return [rest[0].strip() for _, word, _, *rest in self._lines() if word == "failed"]

    def opened(self) -> float | None:
        return next((float(at) for at, word, *_ in self._lines() if word == "open"), None)

    def clock(self) -> float:
        """The wall clock by which the core goes there, when the pool was opened."""
        return next(float(rest[0]) for _, word, _, *rest in self._lines() if word == "open")

    def longest_without(self, start: float, end: float) -> float:
        """The longest time between two moments in which this program had no lease."""
        longest, covered = 0.0, start
        for lease in sorted(self.leases(), key=lambda lease: lease.begun):
            if lease.begun > end:
                break
            longest = max(longest, lease.begun - covered)
            covered = max(covered, min(end, lease.ended if lease.ended is not None else end))
        return max(longest, end - covered)

    def close(self) -> None:
        """Ends it as a supervisor does, which waits."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(60) == 0, self.failures()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def shares(programs: list[Running], start: float) -> list[int]:
    """The leases of each since then."""
    return [sum(lease.begun >= start for lease in program.leases()) for program in programs]


def sessions(program: Running, start: float) -> Counter[str]:
    """How often each session was lent since then."""
    return Counter(lease.session_id for lease in program.leases() if lease.begun >= start)


def all_open(programs: list[Running]) -> float:
    """Waits until each has its pool, and says when that was."""
    until(lambda: all(program.opened() is not None for program in programs))
    return time.monotonic()


def living(sandbox: Sandbox) -> int:
    return sum(session["status"] in ("creating", "active") for session in sandbox.state()["sessions"])


def main(told: dict[str, Any]) -> None:
    over, writing = threading.Event(), threading.Lock()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    written = open(told["written"], "a", buffering=1)

    def write(word: str, thread: int, text: object = "") -> None:
        with writing:
            written.write(f"{time.monotonic()} {word} {thread} {' '.join(str(text).split())}\n")

    def lease_once(pool: hopline.Pool, thread: int) -> None:
        try:
            with pool.acquire(target="shop.example", key=f"{told['number']}-{thread}" if told["keyed"] else None, timeout=told["timeout"]) as lease:
                write("lent", thread, lease.session_id)
                over.wait(told["work"])
                lease.observe(200)
                write("back", thread)
        except hopline.Unavailable as error:
            write("none", thread, error)
        over.wait(told["rest"])

    def work(pool: hopline.Pool, thread: int) -> None:
        try:
            if told["every"]:
                over.wait(told["after"])
                at = time.monotonic()
                while not over.is_set():
                    lease_once(pool, thread)
                    at += told["every"]
                    over.wait(max(0, at - time.monotonic()))
            else:
                while not over.is_set():
                    lease_once(pool, thread)
        except hopline.Cancelled:
            pass
        except BaseException as failure:
            write("failed", thread, repr(failure))

    store = hopline.FolderStore(told["folder"])
    with hopline.AgentClient(**told["account"], **told["client"], store=store) as agent, agent.open_pool("shop", **{**SHOP, **told["options"]}) as pool:
        write("open", 0, _hopline.now()[0] / 1000)
        threads = [threading.Thread(target=work, args=(pool, thread)) for thread in range(told["threads"])]
        for thread in threads:
            thread.start()
        over.wait()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
