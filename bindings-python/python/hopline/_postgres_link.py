"""A connection to PostgreSQL for one statement at a time, each with a limit of time, over the libpq that psycopg brings."""

from __future__ import annotations

import re
import selectors
import time
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from ._threads import in_background
from ._values import Secret

if TYPE_CHECKING:
    from psycopg.pq import abc

Row: TypeAlias = list[str | None]
Rows: TypeAlias = list[Row]
MISSING = 'a PostgresStore needs psycopg: pip install "hopline[postgres]"'
_WITHHELD = "its text is withheld, since it may hold a part of the DSN"
# A wait for a standby that is broken off: the commit is done here, and nobody knows whether it would outlast a failover.
_NOT_REPLICATED = {"57014", "57P01"}
# Suspended machines count, where the system has such a clock.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Returns seconds since some moment, by a clock that nobody sets."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class NotDone(Exception):
    """A statement was certainly not done."""

    def __init__(self, text: str, state: str = "") -> None:
        super().__init__(text)
        self.state = state
        """The SQLSTATE, if the server has said it."""


class MaybeDone(Exception):
    """A statement may or may not be done."""


class Address:
    """Where a database is, and with which password."""

    __slots__ = ("_pieces", "_text", "shown")

    def __init__(self, dsn: str) -> None:
        try:
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError:
            raise ImportError(MISSING) from None
        try:
            read = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
        except ProgrammingError:
            # libpq's own text has pieces of it.
            raise ValueError("the DSN can't be read: give `postgresql://user@host/database`, with `%40` for an `@` in a password") from None
        settings: dict[str, str] = {"fallback_application_name": "hopline", **read, "client_encoding": "UTF8"}
        self._text = Secret(make_conninfo("", **settings))
        self.shown = shown(dsn)
        """The DSN without its password."""
        login = dsn.partition("://")[2].rpartition("@")[0].partition(":")[2] if is_database(dsn) else ""
        pieces = {*re.split(r"[/?#@:&=\s]", login), unquote(login), login, read.get("password", ""), read.get("sslpassword", "")}
        self._pieces = [Secret(piece) for piece in pieces if piece]

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    def start(self) -> abc.PGconn:
        """Begins to connect."""
        from psycopg import pq

        return pq.PGconn.connect_start(self._text.reveal().encode())

    def clean(self, text: str) -> str:
        """Returns a message, unless it holds a piece of the password."""
        line = " ".join(text.split())
        return _WITHHELD if any(piece.reveal() in line for piece in self._pieces) else line


def is_database(store: str) -> bool:
    """Returns true for the address of a database; all else names a folder."""
    return store.startswith(("postgresql://", "postgres://"))


def shown(dsn: str) -> str:
    """Returns a DSN without what may be a password."""
    if not is_database(dsn):
        return "postgresql://…"
    scheme, _, rest = dsn.partition("://")
    login, at, place = rest.rpartition("@")
    path, _, query = place.partition("?")
    settings = [setting for setting in query.split("&") if setting and "pass" not in unquote(setting).lower()]
    # A sign of a password that was not written as `%3F` or the like looks like the end of the login.
    user = re.split("[:/?#]", login)[0]
    return f"{scheme}://{user}{at}{path}{'?' if settings else ''}{'&'.join(settings)}"


class Link:
    """One connection."""

    def __init__(self, address: Address, until: float) -> None:
        from psycopg import pq

        self._address = address
        self._is_replicated = True
        self._conn = conn = address.start()
        try:
            self._wait_until_open(until)
        except BaseException:
            conn.finish()
            raise
        conn.nonblocking = 1
        conn.notice_handler = self._note
        self.version = conn.server_version
        self.used = now()
        self._fields = pq.DiagnosticField
        self._status = pq.ExecStatus

    @property
    def is_open(self) -> bool:
        """Returns false once the connection is known to be lost."""
        from psycopg import pq

        return self._conn.status == pq.ConnStatus.OK

    def end(self) -> None:
        """Closes it."""
        self._conn.finish()

    def ask(self, statement: str, until: float) -> list[Rows]:
        """Makes a statement, or several in one transaction, and returns the rows of each that has some, as text."""
        self._is_replicated = True
        try:
            return self._ask(statement, until)
        except (NotDone, MaybeDone):
            raise
        except BaseException as error:
            # An interrupt, or a lost connection.
            self._break_off()
            if isinstance(error, Exception):
                raise MaybeDone(f"the connection to the database was lost: {self._address.clean(str(error))}") from None
            raise
        finally:
            self.used = now()

    def _ask(self, statement: str, until: float) -> list[Rows]:
        conn = self._conn
        conn.send_query(statement.encode())
        while conn.flush():
            if self._wait(selectors.EVENT_READ | selectors.EVENT_WRITE, until) & selectors.EVENT_READ:
                conn.consume_input()
        told: list[Rows] = []
        failed: tuple[str, str, str] | None = None
        while True:
            while conn.is_busy():
                self._wait(selectors.EVENT_READ, until)
                conn.consume_input()
            if (result := conn.get_result()) is None:
                break
            if result.status == self._status.TUPLES_OK:
                told.append([[_text(result.get_value(row, column)) for column in range(result.nfields)] for row in range(result.ntuples)])
            elif result.status == self._status.FATAL_ERROR and failed is None:
                severity, state, said = (
                    _text(result.error_field(field)) or ""
                    for field in (self._fields.SEVERITY_NONLOCALIZED, self._fields.SQLSTATE, self._fields.MESSAGE_PRIMARY)
                )
                failed = severity, state, self._address.clean(said or (_text(result.error_message) or ""))
        if failed is not None:
            severity, state, said = failed
            # The server has rolled back what it answers with an error. One that ends the connection may have come after the commit.
            if severity == "ERROR" and not state.startswith("08"):
                raise NotDone(f"the database refused the call: {said} (SQLSTATE {state})", state)
            self.end()
            raise MaybeDone(f"the connection to the database was lost: {said}")
        if not self._is_replicated:
            raise MaybeDone("the database did not wait for its standby")
        return told

    def _note(self, result: abc.PGresult) -> None:
        if _text(result.error_field(self._fields.SQLSTATE)) in _NOT_REPLICATED:
            self._is_replicated = False

    def _wait_until_open(self, until: float) -> None:
        from psycopg import pq

        conn, asked = self._conn, selectors.EVENT_WRITE
        while True:
            if conn.status == pq.ConnStatus.BAD:
                raise NotDone(f"the database can't be reached: {self._address.clean(conn.error_message.decode('utf-8', 'replace'))}")
            if not self._poll(asked, until):
                raise NotDone("the database can't be reached: it did not answer in time")
            status = conn.connect_poll()
            if status == pq.PollingStatus.OK:
                return
            if status == pq.PollingStatus.FAILED:
                raise NotDone(f"the database can't be reached: {self._address.clean(conn.error_message.decode('utf-8', 'replace'))}")
            asked = selectors.EVENT_READ if status == pq.PollingStatus.READING else selectors.EVENT_WRITE

    def _wait(self, events: int, until: float) -> int:
        if not (ready := self._poll(events, until)):
            raise OSError("it did not answer in time")
        return ready

    def _poll(self, events: int, until: float) -> int:
        with selectors.DefaultSelector() as selector:
            selector.register(self._conn.socket, events)
            ready = selector.select(max(0.0, until - now()))
        return ready[0][1] if ready else 0

    def _break_off(self) -> None:
        """Ends the connection, and has the server break off what it does, as far as it can be reached."""
        try:
            cancel = self._conn.get_cancel()
            in_background(cancel.cancel)
        except Exception:
            pass  # the server ends the statement by its own limit of time
        self.end()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
