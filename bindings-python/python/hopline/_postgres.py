"""A store in a PostgreSQL database, which any number of machines may share. `postgres.sql` has what the database does."""

from __future__ import annotations

import os
import random
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from time import sleep
from typing import TYPE_CHECKING, Final

from ._log import log
from ._postgres_link import Address, Link, MaybeDone, NotDone, Rows, now
from ._store import Lost, OverCap, OwnedElsewhere, StoredName, StoredPage, StoreNotOpened
from ._threads import in_background
from ._told import Whose
from ._values import Secret

if TYPE_CHECKING:
    from decimal import Decimal

VERSION: Final = 1
"""The version of the schema that this client knows."""
_PAGE = 500
_TTL = 60.0
"""The time that claims outlive their owner's last sign of life."""
_MARGIN = 5.0
"""The time before that in which they are not trusted any more."""
_VOUCHED = 20.0
_RENEW = _TTL / 4
_IDLE = 30.0
_LOOK = 5.0
_CLOSING = 4.0
_GRACE = 2.0
_SWEEPS = 0.05
_PLAIN = re.compile(r"[0-9A-Za-z._-]*")
_AGAIN = {"40001", "40P01", "55P03", "53300", "57P03"}
"""Errors that go by: two calls at once, and a server that begins or is full."""
_LATE, _LOST_COMMITS = "HL001", "HL003"
_REACHING = 2.0
"""The longest time, in seconds, in which a server that can't be reached is tried again."""
BROKEN = "the database has lost what it had confirmed, as after a failover without a synchronous standby, or a return to a backup: nothing more is bought"


class PostgresStore:
    """A store in a PostgreSQL database (13 or later) that any number of machines may share. Give each client an object of its own.

    `hopline store init --store postgresql://…` makes its tables. Claims outlive a client that gives no sign of life by 60 seconds. Needs
    `pip install "hopline[postgres]"`. The store has connections of its own: one for calls, which is closed when idle, and one that renews the claims
    every 15 seconds in a thread. PgBouncer in transaction mode may stand before the server.
    """

    __slots__ = ("__weakref__", "_address", "_clock", "_held", "_lost", "_schema", "_timeout")

    def __init__(self, dsn: str | Secret, *, schema: str = "hopline", timeout: float = 10, clock: Callable[[], float] | None = None) -> None:
        """Makes a store in a database. Nothing is sent before a client's first call that needs it.

        Args:
            dsn: The address, as libpq reads it: `postgresql://user@host/database`. Never printed with its password, which may also come from
                PGPASSWORD or a password file.
            schema: The schema of the tables.
            timeout: The seconds that a call may take, at most 25.
            clock: Returns seconds since 1970, for tests. Default: the server's clock.
        """
        if not 0 < timeout <= 25:
            raise ValueError("`timeout` is more than 0 and at most 25 seconds")
        self._address = Address(dsn.reveal() if isinstance(dsn, Secret) else dsn)
        self._schema = _quoted(schema)
        self._timeout = float(timeout)
        self._clock = clock
        self._lost: Lost | None = None
        self._held = _Held()

    # The calls of a store.

    def claim(self, names: Sequence[str], most: int, /) -> Mapping[str, bytes | None] | OwnedElsewhere:
        """See `Store`."""
        held = self._here()
        while True:
            owner, rows = self._owned("claim", f"{_texts(names)}, {int(most)}, {self._at()}")
            if not _is_true(rows[-1][0]):
                self._end_claims(held, owner)
            # Claims that ended meanwhile were told, so what was granted to that owner is claimed again.
            elif held.owner is owner:
                got = {name: _data(data) for _, name, data in rows[:-1] if name is not None}
                return got or OwnedElsewhere(_data(rows[-1][2]))

    def put(self, name: str, data: bytes, /, *, new: bool, keep_for: float | None, release: bool) -> bool:
        """See `Store`."""
        held = self._here()
        keep = "null" if keep_for is None else _seconds(keep_for)
        given = f"{_text(name)}, decode('{bytes(data).hex()}', 'hex'), {bool(new)}, {keep}, {bool(release)}, {self._at()}"
        while True:
            owner, [[alive, done]] = self._owned("put", given)
            if _is_true(alive) or _is_true(done):
                return _is_true(done)
            self._end_claims(held, owner)
            if not new:
                return False

    def delete(self, name: str, /) -> bool:
        """See `Store`."""
        held = self._here()
        owner, [[alive, done]] = self._owned("delete", f"{_text(name)}, {self._at()}")
        if not _is_true(alive):
            self._end_claims(held, owner)
        return _is_true(done)

    def release(self, names: Sequence[str] | None, /) -> None:
        """See `Store`."""
        # An owner that made no call yet owns nothing.
        if self._here().owner.number:
            self._owned("release", f"{'null' if names is None else _texts(names)}, false")

    def list(self, space: str, /, *, after: str | None, open: bool) -> StoredPage:
        """See `Store`."""
        given = f"'{self._here().owner.id}', {_text(space)}, {'null' if after is None else _text(after)}, {bool(open)}, {self._at()}"
        rows = self.ask(f"select * from {{schema}}.list({given})")
        entries = [StoredName(name, _data(data) or b"", _WHOSE[whose or ""]) for name, data, whose in rows[:_PAGE] if name is not None]
        return StoredPage(entries, len(rows) > _PAGE)

    def spend(self, space: str, entry: str, amount: Decimal, /, *, day: int | None, cap: Decimal | None) -> int | OverCap:
        """See `Store`."""
        from decimal import Decimal

        held = self._here()
        numbers = f"{_number(amount)}, {'null' if day is None else int(day)}, {'null' if cap is None else _number(cap)}"
        owner, [[alive, granted, on, total]] = self._owned("spend", f"{_text(space)}, {_text(entry)}, {numbers}, {self._at()}")
        if not _is_true(alive):
            self._end_claims(held, owner)
        return int(on or 0) if _is_true(granted) else OverCap(Decimal(total or 0), int(on or 0))

    def close(self) -> None:
        """See `Store`."""
        held = self._here()
        held.is_over.set()
        try:
            if held.owner.number and held.broken is None:
                self._owned("release", "null, true")
        except OSError as trouble:
            log("warning", "the database does not know that a client has closed, so its names stay busy for %d s: %s", _TTL, trouble)
        finally:
            # Any later call is another owner's.
            self._held = _Held()
            with held.lock:
                held.cut()

    # The calls of a store whose claims can end.

    def on_lost(self, lost: Lost, /) -> None:
        """See `LeasedStore`."""
        self._lost = lost

    def vouches(self) -> bool:
        """See `LeasedStore`."""
        held = self._here()
        until = held.owner.until
        return held.broken is None and not held.is_ending and (until is None or now() + _VOUCHED < until - _MARGIN)

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.shown!r})"

    def __reduce__(self) -> str:
        raise TypeError("a PostgresStore is not pickled: it serves one client of one process")

    # Calls of the command.

    def ask(self, statement: str) -> Rows:
        """Makes a statement that only reads; `{schema}` stands for the schema."""
        return self._call(lambda _: statement.replace("{schema}", self._schema))

    def run(self, script: str) -> Sequence[Rows]:
        """Runs a script as the owner of the tables, for at most a minute, over a connection of its own. The tables need not be there."""
        until = now() + 60
        try:
            link = Link(self._address, until)
            try:
                return link.ask(script, until)
            finally:
                link.end()
        except (NotDone, MaybeDone) as trouble:
            raise OSError(str(trouble)) from None

    @property
    def shown(self) -> str:
        """The address without its password."""
        return self._address.shown

    # How a call is made.

    def _here(self) -> _Held:
        # A child of a fork owns nothing, and does not touch the connections of its parent.
        if self._held.pid != os.getpid():
            self._held = _Held()
        return self._held

    def _at(self) -> str:
        return "null" if self._clock is None else f"to_timestamp({self._clock():.6f})"

    def _owned(self, call: str, given: str) -> tuple[_Owner, Rows]:
        """Makes a call of this client. Its number tells its repeats from later calls."""
        held = self._here()
        with held.lock:
            owner = held.owner
            owner.number += 1
            number = owner.number
            enter = "" if call == "release" else f"{_seconds(_TTL)}, "

            def statement(timed: str) -> str:
                first = "" if owner.former is None else f"select {self._schema}.leave('{owner.former}'); "
                return f"{first}select * from {self._schema}.{call}('{owner.id}', {number}, {owner.seen}, {timed}, {enter}{given})"

            begun = now()
            rows = self._call(statement)
            owner.seen, owner.former = number, None
            if _is_true(rows[-1][0]):
                owner.until = max(owner.until or 0.0, begun + _TTL)
            self._begin_renewing(held)
            return owner, rows

    def _call(self, statement: Callable[[str], str]) -> Rows:
        """Makes a statement, and repeats it as long as that may help."""
        held = self._here()
        with held.lock:
            begun = now()
            until = begun + (min(self._timeout, _CLOSING) if held.is_over.is_set() else self._timeout)
            is_maybe, pause = False, 0.0
            while True:
                if held.broken is not None:
                    raise StoreNotOpened(held.broken)
                try:
                    return self._once(held, statement, until)
                except MaybeDone as trouble:
                    is_maybe, said, helps = True, str(trouble), now() < until
                    held.cut()
                except NotDone as trouble:
                    said, helps = self._refused(held, trouble, begun, until)
                if not helps:
                    raise (OSError if is_maybe else StoreNotOpened)(said) from None
                sleep(min(pause * (0.5 + random.random()), max(0.0, until - now())))
                pause = min(max(pause * 2, 0.02), 0.5)

    def _once(self, held: _Held, statement: Callable[[str], str], until: float) -> Rows:
        if held.link is None or not held.link.is_open:
            held.cut()
            held.link = Link(self._address, until)
        link = held.link
        if held.clock is None:
            self._greet(held, link, until)
        # The server ends what takes too long before this client gives it up.
        *_, rows, [[clock]] = link.ask(_message(statement(held.timed(until)), until), until + _GRACE)
        held.set_clock(clock)
        return rows

    def _greet(self, held: _Held, link: Link, until: float) -> None:
        if link.version < 130000:
            raise NotDone(f"PostgreSQL 13 or later is needed, and this is {link.version // 10000}", "HL005")
        try:
            [[_, works_from]], [[clock]] = link.ask(_message(f"select * from {self._schema}.greet()", until), until)
        except NotDone as trouble:
            if trouble.state in ("3F000", "42883"):
                raise NotDone("the database has no tables of Hopline: `hopline store init` makes them", trouble.state) from None
            raise
        if int(works_from or 0) > VERSION:
            raise NotDone("the tables are those of a newer version of Hopline", "HL005")
        held.set_clock(clock)

    def _refused(self, held: _Held, trouble: NotDone, begun: float, until: float) -> tuple[str, bool]:
        """Returns what to say, and whether to try again."""
        if trouble.state == _LOST_COMMITS:
            self._break(held)
            return BROKEN, False
        if trouble.state == "":
            return str(trouble), now() < min(until, begun + _REACHING)
        if trouble.state == _LATE:
            held.clock = None
        return str(trouble), now() < until and trouble.state in (*_AGAIN, _LATE)

    # The claims, and their end.

    def _end_claims(self, held: _Held, owner: _Owner) -> None:
        """They have ended: what comes is another owner's, and the client knows before it claims again."""
        with held.ending:
            if held.owner is not owner:
                return
            # Not before its client knows does the store vouch for the next owner.
            held.is_ending = True
            held.owner = _Owner(owner.id if owner.number else owner.former)
        try:
            if self._lost is not None and self._held is held:
                self._lost()
        finally:
            held.is_ending = False

    def _break(self, held: _Held) -> None:
        held.broken = BROKEN
        log("error", "%s", BROKEN)
        if (lost := self._lost) is not None:
            in_background(lost)

    def _begin_renewing(self, held: _Held) -> None:
        if held.is_renewing or held.is_over.is_set():
            return
        me: weakref.ref[PostgresStore] = weakref.ref(self)
        try:
            in_background(lambda: _keep(me, held))
            held.is_renewing = True
        except RuntimeError:  # the interpreter ends
            return

    def _renew(self, held: _Held, link: Link | None) -> Link | None:
        """Renews the claims of this client. Returns the connection if that worked."""
        owner = held.owner
        begun = now()
        if owner.until is not None and owner.until - _MARGIN <= begun:
            self._end_claims(held, owner)
            return link
        if owner.until is None or held.broken is not None:
            return link
        until = min(begun + _RENEW / 3, owner.until)
        try:
            link = link or Link(self._address, until)
            sweeps = random.random() < _SWEEPS
            statement = f"select * from {self._schema}.renew('{owner.id}', {owner.seen}, {held.timed(until)}, {sweeps})"
            [[alive]], [[clock]] = link.ask(_message(statement, until), until)
            held.set_clock(clock)
        except (NotDone, MaybeDone) as trouble:
            if isinstance(trouble, NotDone) and trouble.state == _LOST_COMMITS:
                self._break(held)
            held.clock = None
            if link is not None:
                link.end()
            return None
        if _is_true(alive):
            owner.until = max(owner.until, begun + _TTL)
        else:
            self._end_claims(held, owner)
        return link


def script(schema: str = "hopline", worker: str | None = None) -> str:
    """Returns the SQL that makes the tables or brings them up to date, as often as it is run, for the role that workers log in as."""
    from pathlib import Path

    text = Path(__file__).with_name("postgres.sql").read_text(encoding="utf-8")
    text = text.replace('"hopline"', _quoted(schema))
    if worker is not None:
        granted = f"grant usage on schema {{0}} to {_quoted(worker)};\ngrant execute on all functions in schema {{0}} to {_quoted(worker)};\n"
        text = text.removesuffix("commit;\n") + granted.format(_quoted(schema)) + "commit;\n"
    return text


class _Owner:
    """An owner of names: a client, until its claims end."""

    __slots__ = ("former", "id", "number", "seen", "until")

    def __init__(self, former: str | None = None) -> None:
        from uuid import uuid4

        self.former = former
        """The owner before it, until the database knows that it has left."""

        self.id = str(uuid4())
        self.number = self.seen = 0
        """The last call, and the last one that was answered."""
        self.until: float | None = None
        """The end of its claims, counted from before the last sign of life was sent; none before the first."""


class _Held:
    """The part of a store that belongs to one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.RLock()
        """Held while a call is made: they take turns, on one connection."""
        self.link: Link | None = None
        self.owner = _Owner()
        self.clock: float | None = None
        """The server's clock less this machine's, or a little less."""
        self.broken: str | None = None
        self.is_renewing = False
        self.is_over = threading.Event()
        self.ending = threading.Lock()
        self.is_ending = False
        """True while the client is told that its claims have ended."""

    def cut(self) -> None:
        """Ends the connection of calls."""
        link, self.link = self.link, None
        if link is not None:
            link.end()

    def set_clock(self, told: str | None) -> None:
        """Notes what the server's clock shows."""
        self.clock = float(told or 0) - now()

    def timed(self, until: float) -> str:
        """When a call is sent by the server's clock, and within what time it may be done."""
        at = now()
        sent = "null" if self.clock is None else f"to_timestamp({at + self.clock:.6f})"
        return f"{sent}, {_seconds(max(0.001, until - at))}"


def _keep(of: weakref.ref[PostgresStore], held: _Held) -> None:
    """Renews the claims until the store is closed or dropped, and closes the connection of calls when it is idle."""
    link: Link | None = None
    due = now() + _RENEW
    while not held.is_over.wait(min(max(0.0, due - now()), _LOOK)):
        if (store := of()) is None or store._held is not held:
            break
        until = held.owner.until
        if now() >= due or (until is not None and now() >= until - _MARGIN):
            link = store._renew(held, link)
            due = now() + (_RENEW if link is not None else 1.0)
        del store
        if held.link is not None and now() > held.link.used + _IDLE and held.lock.acquire(blocking=False):
            try:
                held.cut()
            finally:
                held.lock.release()
    if link is not None:
        link.end()


def _message(statement: str, until: float) -> str:
    """A statement as one message, and so as one transaction, with a limit of time that also holds behind a pooler."""
    ms = max(1, round((until - now()) * 1000))
    return (
        f"set transaction isolation level read committed, read write; set local statement_timeout = {ms}; "
        f"{statement}; select extract(epoch from clock_timestamp())"
    )


_WHOSE: dict[str, Whose] = {"mine": "mine", "free": "free", "other": "other"}


def _is_true(told: str | None) -> bool:
    return told == "t"


def _data(told: str | None) -> bytes | None:
    return None if told is None else bytes.fromhex(told)


def _text(given: str) -> str:
    """A literal. Names have plain letters; of others no sign means anything to the server."""
    return f"'{given}'" if _PLAIN.fullmatch(given) else f"convert_from(decode('{given.encode().hex()}', 'hex'), 'UTF8')"


def _texts(given: Sequence[str]) -> str:
    return f"array[{', '.join(map(_text, given))}]::text[]"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _seconds(given: float) -> str:
    return f"make_interval(secs => {float(given):.6f})"


def _number(given: Decimal) -> str:
    if not given.is_finite():
        raise ValueError("an amount is a number")
    return f"{given:f}::numeric"
