"""The command's work with a store in PostgreSQL: makes its tables, and says what the server is."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import hopline
from hopline._postgres import VERSION, script
from hopline._postgres_link import shown

from .screen import Line, Loud, Stop

_CLOCKS = 5.0
"""The difference of two clocks, in seconds, that is worth a line."""


def opened(dsn: str) -> hopline.PostgresStore:
    """Returns the store of a database."""
    try:
        return hopline.PostgresStore(dsn)
    except ValueError as error:
        raise Stop(str(error), code=2) from None
    except ImportError as error:
        raise Stop(str(error)) from None


def init(dsn: str, worker: str | None) -> bool:
    """Makes the tables, or brings them up to date. Returns true if there were none."""
    store = opened(dsn)
    try:
        [[[there]]] = store.run("select to_regclass('hopline.format') is not null")
        store.run(script(worker=worker))
    except OSError as error:
        raise Stop(f"`{shown(dsn)}`: {error}") from None
    finally:
        store.close()
    return there != "t"


def unseen(dsn: str, spaces: set[str]) -> int:
    """Counts the records of spaces that no client of this command has listed."""
    store = opened(dsn)
    try:
        return sum(int(records or 0) for space, records in store.ask("select * from {schema}.spaces()") if space not in spaces)
    except OSError as error:
        raise Stop(f"`{shown(dsn)}`: {error}") from None
    finally:
        store.close()


class Look(NamedTuple):
    """The findings about a database."""

    members: dict[str, Any]
    lines: list[Line]
    is_safe: bool


def look(dsn: str) -> Look:
    """Looks at the server: whether it keeps what it confirms, whose clock differs, and whose the names are."""
    store = opened(dsn)
    try:
        before = time.time()
        [[version, tables, clock, role, is_owner, is_copy]] = store.ask(_SERVER)
        off = float(clock or 0) - (before + time.time()) / 2
        settings = {str(name): value for name, value in store.ask(_SETTINGS)}
        counts = {str(what): int(number or 0) for what, number in store.ask("select * from {schema}.report()")}
    except OSError as error:
        raise Stop(f"`{shown(dsn)}`: {error}") from None
    finally:
        store.close()
    members = {"server": version, "tables": int(tables or 0), "role": role, "is_owner": is_owner == "t", "clock_off": round(off, 1), **settings, **counts}
    lines: list[Line] = [
        f"PostgreSQL {version}, tables of version {tables} (this is {VERSION}); the role `{role}` {'owns them' if is_owner == 't' else 'may call them'}",
        f"{counts['names']} names, {counts['open']} of them open; {counts['owned']} belong to {counts['clients']} living clients, {counts['left']} to clients that are gone",
    ]
    unsafe = []
    if settings.get("fsync") == "off" or settings.get("full_page_writes") == "off":
        unsafe.append("`fsync` or `full_page_writes` is off: a power cut loses purchases")
    if is_copy == "t":
        unsafe.append("this is a standby, which takes no calls")
    if settings.get("synchronous_commit") in ("off", "local"):
        lines.append(f"`synchronous_commit` is {settings['synchronous_commit']} here; the calls of Hopline commit with `on`")
    if not settings.get("synchronous_standby_names"):
        lines.append("no synchronous standby: a failover to another one loses the last commits, and Hopline then stops buying where it sees that")
    if abs(off) > _CLOCKS:
        lines.append(Loud(f"the clock of the server is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} this one; the server's counts"))
    return Look(members, [*lines, *map(Loud, unsafe)], not unsafe)


_SERVER = """\
select current_setting('server_version'), (select version from {schema}.greet()), extract(epoch from clock_timestamp()), current_user,
    (select pg_has_role(current_user, nspowner, 'usage') from pg_namespace where oid = to_regnamespace('{schema}')), pg_is_in_recovery()"""
_SETTINGS = """\
select name, current_setting(name) from unnest(array['synchronous_commit', 'fsync', 'full_page_writes', 'synchronous_standby_names']) name"""
