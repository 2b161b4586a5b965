"""Engines that run the tasks of a fleet on this machine: four workers of Celery, with a Redis server of the tests' own, and four of Dask.
The work is that of the site's page: `core/docs/programs/fleet`.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from conftest import ROOT
from postgres import found, start

PROGRAMS = ROOT / "core" / "docs" / "programs" / "fleet"
REDIS = found("redis-server", "HOPLINE_REDIS_SERVER")
WORKERS = 4
EACH, THREADS = 2, 8
"""The tasks that a worker of Celery does at once, each in a process, and one of Dask, in threads: those that are left after some were killed want
all sessions.
"""


def wait(holds: Callable[[], object], what: str) -> None:
    """For something that comes, even on a machine that is ten times slower."""
    end = time.monotonic() + 400
    while not holds():
        assert time.monotonic() < end, f"it never came: {what}"
        time.sleep(0.05)


@dataclass(frozen=True)
class Page:
    """A page that was read: when, through which exit, and by which process."""

    begun: float
    ended: float
    exit: str
    process: int
    path: str


class Site:
    """A site whose pages take a while. Each exit is one address."""

    def __init__(self, takes: float) -> None:
        site, self.pages = self, list[Page]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                begun = time.monotonic()
                time.sleep(takes)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                process = int(self.headers["User-Agent"].removeprefix("worker-"))
                site.pages.append(Page(begun, time.monotonic(), self.client_address[0], process, self.path))

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def since(self, moment: float) -> list[Page]:
        return [page for page in list(self.pages) if page.begun >= moment]

    def overlaps(self, without: set[int]) -> list[tuple[Page, Page]]:
        """Pages that two processes read through one exit at the same time. A process that was suspended may be in the middle of one."""
        last: dict[str, Page] = {}
        both = []
        for page in sorted(self.pages, key=lambda page: page.begun):
            if page.process not in without:
                before = last.get(page.exit)
                if before is not None and page.begun < before.ended and page.process != before.process:
                    both.append((before, page))
                last[page.exit] = page
        return both

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Engine(Protocol):
    """An engine, with its workers."""

    def processes(self) -> list[int]:
        """Those that have a client each."""
        ...

    def give(self, urls: Sequence[str]) -> None: ...

    def close(self) -> None:
        """Ends all workers in good order."""
        ...

    def roll(self, workers: int) -> None:
        """Ends so many workers in good order, one after the other, and starts another one in the place of each."""
        ...


def _children(process: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


class Celery:
    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        assert REDIS is not None, "redis-server is not installed; HOPLINE_REDIS_SERVER may name the program"
        # The path of a socket is short.
        self._folder = Path(tempfile.mkdtemp(prefix="hopline-redis-"))
        self._folder.chmod(0o777)
        socket = self._folder / "s"
        self._redis = start(REDIS, "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "777", "--save", "", "--dir", str(self._folder))
        wait(lambda: socket.exists() or self._redis.poll() is not None, "Redis")
        self._environment = {**environment, "BROKER": f"redis+socket://{socket}"}
        self._out = (folder / "celery.txt").open("ab")
        self._workers = [self._start(number) for number in range(WORKERS)]
        from celery import Celery as App

        self._app = App("given", broker=self._environment["BROKER"])

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "celery", "-A", "celery_fleet", "worker", "--concurrency", str(EACH), "--include", "fleet_worker"]
        quiet = ["--loglevel", "warning", "--hostname", f"{number}-{time.monotonic_ns()}@here", "--without-gossip", "--without-mingle"]
        return subprocess.Popen([*command, *quiet], cwd=PROGRAMS, env=self._environment, stdout=self._out, stderr=self._out)

    def processes(self) -> list[int]:
        return [child for worker in self._workers for child in _children(worker.pid)]

    def give(self, urls: Sequence[str]) -> None:
        for url in urls:
            self._app.send_task("celery_fleet.fetch", [url], ignore_result=True)

    def roll(self, workers: int) -> None:
        for number in range(workers):
            self._workers[number].send_signal(signal.SIGTERM)
            self._workers[number].wait(300)
            self._workers[number] = self._start(number)
            wait(lambda number=number: len(_children(self._workers[number].pid)) == EACH, "a worker")  # type: ignore[misc]

    def close(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            worker.wait(300)

    def kill(self) -> None:
        for worker in self._workers:
            for process in [*_children(worker.pid), worker.pid]:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            worker.wait(60)
        self._redis.kill()
        self._redis.wait(60)
        self._out.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Dask:
    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        sys.path.insert(0, str(PROGRAMS))
        import dask
        import dask_fleet
        import job
        from distributed import Client, LocalCluster

        self._job, self._given = job, []
        # On a busy machine a worker that was killed comes back later than the 15 seconds after which a cluster gives it up.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
        self._cluster = LocalCluster(
            n_workers=WORKERS, threads_per_worker=THREADS, dashboard_address=":0", env=environment, preload=["fleet_worker"], local_directory=str(folder), silence_logs=50
        )
        self._client = Client(self._cluster)
        self._client.register_plugin(dask_fleet.Closing())

    def processes(self) -> list[int]:
        return [worker.process.process.pid for worker in self._cluster.workers.values() if worker.process is not None and worker.process.process is not None]

    def give(self, urls: Sequence[str]) -> None:
        # The result of a page is kept by the worker that read it, so a page that somebody waits for is read again once that worker is gone.
        self._given = [page for page in self._given if not page.done()]
        self._given += self._client.map(self._job.fetch, urls, retries=50)

    def roll(self, workers: int) -> None:
        for name in list(self._cluster.workers)[:workers]:
            self._cluster.sync(self._cluster.scale_down, [name])
            self._cluster.scale(WORKERS)
            self._client.wait_for_workers(WORKERS, timeout=300)

    def close(self) -> None:
        self._client.close()
        self._cluster.close(timeout=300)

    def kill(self) -> None:
        self.close()
        sys.path.remove(str(PROGRAMS))


@contextmanager
def running(kind: Callable[[dict[str, str], Path], Any], environment: dict[str, str], folder: Path) -> Iterator[Any]:
    # Workers find the job and what the tests change in it.
    path = os.pathsep.join([str(PROGRAMS), str(Path(__file__).parent)])
    engine = kind({**os.environ, **environment, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}, folder)
    try:
        yield engine
    finally:
        engine.kill()
