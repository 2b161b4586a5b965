"""A PostgreSQL server of the tests' own, a pooler before it, and a line to it that can be cut."""

import ctypes
import glob
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hopline import PostgresStore
from hopline._postgres import script

_LIBC = ctypes.CDLL(None)
_DIES_WITH_PARENT = 1


def found(name: str, variable: str) -> str | None:
    """A program of Debian's, which keeps those of the server outside of PATH."""
    folders = [os.environ.get("PATH", ""), "/usr/sbin", *sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return os.environ.get(variable) or shutil.which(name, path=":".join(folders))


POSTGRES = found("postgres", "HOPLINE_POSTGRES")
PGBOUNCER = found("pgbouncer", "HOPLINE_PGBOUNCER")


def start(*command: str, environment: dict[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """Starts a program as the user postgres, if this is root: the server refuses to run as root. The program ends with this process."""
    who: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, **(environment or {})},
        preexec_fn=lambda: _LIBC.prctl(_DIES_WITH_PARENT, signal.SIGQUIT),
        **who,
    )


class Server:
    """A server on a socket in a folder of its own, with a role for workers and, unless it is to be made ready, the tables of Hopline."""

    def __init__(self, *, is_ready: bool = True, copies: "Server | None" = None) -> None:
        assert POSTGRES is not None, "postgres is not installed; HOPLINE_POSTGRES may name the program"
        self.folder = Path(tempfile.mkdtemp(prefix="hopline-pg-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._data = str(self.folder / "data")
        make = ["initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
        if copies is not None:  # a standby begins as a copy
            make = ["pg_basebackup", "-h", str(copies.folder), "-U", "postgres", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        assert start(str(Path(POSTGRES).resolve().with_name(make[0])), *make[1:], "-D", self._data).wait(120) == 0
        self.admin_dsn = f"postgresql://postgres@/postgres?host={self.folder}"
        self.dsn = f"postgresql://worker@/postgres?host={self.folder}"
        self.start()
        if copies is not None:
            return
        self.sql("create role worker login")
        if is_ready:
            PostgresStore(self.admin_dsn).run(script(worker="worker"))

    def start(self, **environment: str) -> None:
        # Without flushes to the disk, which no test looks at.
        settings = ("-c", "listen_addresses=", "-c", "max_connections=60", "-c", "autovacuum=off", "-F")
        assert POSTGRES is not None
        self._process = start(POSTGRES, "-D", self._data, "-k", str(self.folder), *settings, environment=environment)
        until = time.monotonic() + 120
        while True:
            with suppress(psycopg.OperationalError):
                self.admin = psycopg.connect(self.admin_dsn, autocommit=True)
                return
            assert self._process.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        self.admin.close()
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)

    def sql(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        with self.admin.cursor() as cursor:
            cursor.execute(statement, given)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> None:
        self.sql("truncate hopline.names, hopline.owners, hopline.days, hopline.entries")

    def end_claims(self, client: PostgresStore) -> None:
        """They end as after a minute without a sign of life."""
        self.sql("update hopline.owners set until = now() - interval '1 second' where id = %s", client._held.owner.id)

    def die(self, client: PostgresStore) -> None:
        """A process is gone, and its claims have ended."""
        self.end_claims(client)
        client._held.is_over.set()
        client._held.cut()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


needs_postgres = pytest.mark.skipif(
    not POSTGRES and os.environ.get("CI") != "true", reason="postgres is not installed; HOPLINE_POSTGRES may name the program"
)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    """One server for the tests of a file."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(running: Server) -> Server:
    """That server, with nothing in the tables of Hopline."""
    running.empty()
    return running


class Pooler:
    """PgBouncer in transaction mode: each statement may be another connection of the server."""

    def __init__(self, server: Server) -> None:
        assert PGBOUNCER is not None, "pgbouncer is not installed; HOPLINE_PGBOUNCER may name the program"
        folder = server.folder / "pooler"
        folder.mkdir()
        self.dsn = f"host={folder} port=6432 user=worker dbname=postgres"
        folder.joinpath("ini").write_text(
            f"[databases]\npostgres = host={server.folder} dbname=postgres user=worker\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {folder}\n"
            f"listen_port = 6432\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
        )
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        self._process = start(PGBOUNCER, str(folder / "ini"))
        until = time.monotonic() + 60
        while not (folder / ".s.PGSQL.6432").exists():
            assert self._process.poll() is None and time.monotonic() < until, "the pooler did not start"
            time.sleep(0.02)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)


class Line:
    """A line to the server, which cuts the connections of calls: before a statement arrives, or before its answer does.

    `cuts` says what to do with each call of the store: `before`, `after`, or neither.
    """

    def __init__(self, server: Server, cuts: Callable[[str], str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hopline-line-")
        self._server, self._cuts = str(server.folder / ".s.PGSQL.5432"), cuts
        self.dsn = f"postgresql://worker@/postgres?host={self._folder.name}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{self._folder.name}/.s.PGSQL.5432")
        self._listening.listen(32)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), closing(socket.socket(socket.AF_UNIX)) as server, suppress(EOFError, OSError):
            server.connect(self._server)
            length = _exactly(client, 4)
            server.sendall(length + _exactly(client, struct.unpack("!I", length)[0] - 4))
            client.sendall(b"".join(_answer(server)))
            while True:
                kind, body = _message(client)
                text = body[4:-1].decode() if kind == b"Q" else ""
                call = text.partition('"hopline".')[2].partition("(")[0]
                how = self._cuts(call) if call and call not in ("greet", "renew") else ""
                if how == "before":
                    return
                server.sendall(kind + body)
                if kind == b"X":
                    return
                answer = b"".join(_answer(server))
                if how == "after":
                    return
                client.sendall(answer)


def _exactly(end: socket.socket, length: int) -> bytes:
    read = b""
    while len(read) < length:
        if not (more := end.recv(length - len(read))):
            raise EOFError
        read += more
    return read


def _message(end: socket.socket) -> tuple[bytes, bytes]:
    kind, length = _exactly(end, 1), _exactly(end, 4)
    return kind, length + _exactly(end, struct.unpack("!I", length)[0] - 4)


def _answer(server: socket.socket) -> Iterator[bytes]:
    """All messages until the server is ready for the next statement."""
    kind = b""
    while kind != b"Z":
        kind, body = _message(server)
        yield kind + body


def once_each(how: str) -> Callable[[str], str]:
    """Cuts each call once: its repeat passes."""
    was_cut = [False]

    def cuts(_: str) -> str:
        was_cut[0] = not was_cut[0]
        return how if was_cut[0] else ""

    return cuts


def together(*works: Callable[[], Any]) -> Sequence[Any]:
    """Does some work in threads that begin at once, and returns what came of each."""
    results: list[Any] = [None] * len(works)
    begin = threading.Barrier(len(works))

    def run(at: int) -> None:
        begin.wait(300)
        try:
            results[at] = works[at]()
        except BaseException as trouble:
            results[at] = trouble

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(900)
    return results
