"""`PostgresStore` where something goes wrong: races, calls that come late, commits that are lost, clocks that are set, a full disk."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import hopline
import psycopg
import pytest
from canned import SOUND, bought, never, until
from conftest import BUY
from hopline import PostgresStore, _postgres
from postgres import Server, needs_postgres, running, server, start, together

pytestmark = needs_postgres
NAME = "5e.i00000000000000000000000000000001"
OTHER = "5e.i00000000000000000000000000000002"
ROUNDS = 1000


def backend(store: PostgresStore) -> int:
    """The process of the server that serves the calls of a store."""
    [[pid]] = store.ask("select pg_backend_pid()")
    return int(pid or 0)


def put(store: PostgresStore, data: bytes, name: str = NAME, *, new: bool = False, release: bool = False) -> bool:
    return store.put(name, data, new=new, keep_for=None, release=release)


@contextmanager
def in_a_second(store: PostgresStore) -> Iterator[None]:
    """Calls that a connected store gives up after a second."""
    given, store._timeout = store._timeout, 1.0
    yield
    store._timeout = given


def data(server: Server, name: str = NAME) -> bytes | None:
    rows = server.sql("select data from hopline.names where name = %s", name)
    return rows[0][0] if rows else None


def test_no_race_of_one_name_or_of_one_entry_is_wrong(server: Server) -> None:
    """Three clients at once claim one name, make another one, and count one entry up and down: a thousand times."""
    stores = [PostgresStore(server.dsn) for _ in range(3)]
    begin = threading.Barrier(3)

    def life(at: int) -> tuple[list[bool], list[bool]]:
        claimed, made = [], []
        for number in range(ROUNDS):
            begin.wait(300)
            space = f"{number:x}"
            claimed.append(not isinstance(stores[at].claim([f"{space}.i{number:032x}"], 1), hopline.OwnedElsewhere))
            made.append(put(stores[at], b"%d" % at, f"{space}.r{number:032x}", new=True))
            # The third grows it from nothing, grows it too far, or sets it to nothing.
            stores[at].spend(space, "e", Decimal(("4.01", "0", "10.01")[(number + at) % 3]), day=7, cap=Decimal(10))
        return claimed, made

    lives = together(*(lambda at=at: life(at) for at in range(3)))  # type: ignore[misc]
    for kind in range(2):
        assert [sum(round) for round in zip(*(life[kind] for life in lives), strict=True)] == [1] * ROUNDS, kind
    wrong = "select count(*) from hopline.days d where day = 7 and sum <> (select coalesce(sum(amount), 0) from hopline.entries e where e.space = d.space and e.day = 7)"
    assert server.sql(wrong) == [(0,)] and server.sql("select count(*) from hopline.entries where amount > 10") == [(0,)]
    for store in stores:
        store.close()


def test_an_owner_that_comes_back_and_one_that_takes_over_are_never_both_owners(server: Server) -> None:
    back = taken = 0
    link = None
    for number in range(60):
        first, second = PostgresStore(server.dsn), PostgresStore(server.dsn)
        name = f"5e.k{number:032x}"
        assert put(first, b"1", name, new=True)
        second.claim([OTHER], 1)
        server.end_claims(first)
        held = first._held
        [link, claimed] = together(lambda: first._renew(held, link), lambda: second.claim([name], 1))  # noqa: B023
        taken += (is_taken := not isinstance(claimed, hopline.OwnedElsewhere))
        back += (is_back := held.owner.number > 0)
        assert (put(first, b"2", name), put(second, b"3", name)) == (is_back and not is_taken, is_taken) and is_back != is_taken
        for store in (first, second):
            store._held.is_over.set()
            store._held.cut()
    print({"came back": back, "taken over": taken})
    if link is not None:
        link.end()


def test_a_call_that_was_given_up_is_not_done_later(server: Server) -> None:
    store = PostgresStore(server.dsn)
    assert put(store, b"1", new=True)
    pid = backend(store)
    os.kill(pid, signal.SIGSTOP)
    try:
        with in_a_second(store), pytest.raises(OSError) as caught:
            put(store, b"2")
        # The statement may lie on its way, for all that is known.
        assert not isinstance(caught.value, hopline.StoreNotOpened)
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: not server.sql("select 1 from pg_stat_activity where pid = %s", pid))
    assert data(server) == b"1" and put(store, b"3") and data(server) == b"3"
    store.close()


def test_a_call_that_waits_too_long_for_another_is_surely_not_done(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "_GRACE", 60.0)
    store = PostgresStore(server.dsn)
    assert put(store, b"1", new=True)
    with psycopg.connect(server.admin_dsn) as other:
        other.execute("select from hopline.names for update")
        with in_a_second(store), pytest.raises(hopline.StoreNotOpened, match="57014"):
            put(store, b"2")
    assert data(server) == b"1" and put(store, b"3")
    store.close()


def test_an_interrupt_ends_a_call_at_once_here_and_in_the_server(server: Server) -> None:
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    store = PostgresStore(server.dsn, timeout=25)
    assert put(store, b"1", new=True)

    def interrupt() -> None:
        until(lambda: server.sql(waits))
        os.kill(os.getpid(), signal.SIGINT)

    with psycopg.connect(server.admin_dsn) as other:
        other.execute("select from hopline.names for update")
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            put(store, b"2")
        thread.join(60)
        begun = time.monotonic()
        until(lambda: not server.sql(waits))
        print({"the server ended it after": round(time.monotonic() - begun, 2)})
    assert data(server) == b"1" and put(store, b"3") and data(server) == b"3"
    store.close()


def test_a_call_that_comes_late_changes_nothing(server: Server) -> None:
    store = PostgresStore(server.dsn)
    assert put(store, b"1", new=True) and put(store, b"2") and store.delete(NAME)
    late = "select * from hopline.put(%s, %s, 0, now() - %s * interval '1 second', interval '1 second', interval '1 minute', %s, %s, true, null, false, null)"
    for number, ago, state in [(2, 0, "HL002"), (9, 2, "HL001"), (9, -2, "HL001")]:
        with pytest.raises(psycopg.Error) as caught:
            server.sql(late, store._held.owner.id, number, ago, NAME, b"late")
        assert caught.value.sqlstate == state and data(server) is None
    # The clock of the server is set; the store asks for it again, and goes on.
    held = store._held
    assert held.clock is not None
    held.clock -= 3600
    assert put(store, b"3", new=True)
    held.clock += 3600
    assert put(store, b"4") and data(server) == b"4"
    store.close()


@pytest.mark.parametrize("lost", ["update hopline.owners set last_call = last_call - 1", "delete from hopline.owners"])
def test_a_database_that_lost_what_it_had_confirmed_sells_nothing_any_more(server: Server, lost: str) -> None:
    store = PostgresStore(server.dsn)
    with hopline.AgentClient(**SOUND, http=bought, store=store) as agent:
        agent.open_session(**BUY, intent="job-1")
        server.sql(lost)
        with pytest.raises(hopline.HoplineError) as caught:
            agent.open_session(**BUY, intent="job-2")
        assert caught.value.kind == "store" and "lost what it had confirmed" in str(caught.value.__notes__)
        assert not store.vouches() and store._held.broken is not None
    # A later client begins with what is there.
    with hopline.AgentClient(**SOUND, http=never, store=PostgresStore(server.dsn)) as other:
        assert [one.intent for one in other.saved()] == ["job-1"]


@pytest.mark.parametrize("is_synchronous", [True, False])
def test_a_failover_loses_nothing_where_the_standby_is_synchronous_and_is_noticed_elsewhere(is_synchronous: bool) -> None:
    first = Server()
    second = Server(copies=first)
    try:
        either = f"postgresql://worker@/postgres?host={first.folder},{second.folder}&target_session_attrs=read-write"
        store = PostgresStore(either)
        assert put(store, b"1", new=True)
        until(lambda: second.sql("select convert_from(data, 'UTF8') from hopline.names") == [("1",)])
        if is_synchronous:
            first.sql("alter system set synchronous_standby_names = '*'")
            first.sql("select pg_reload_conf()")
            until(lambda: first.sql("select sync_state from pg_stat_replication") == [("sync",)])
            assert put(store, b"2")
            first.stop()
        else:
            second.stop()
            assert put(store, b"2")
            first.stop()
            second.start()
        assert second.sql("select pg_promote()") == [(True,)]
        if is_synchronous:
            assert put(store, b"3") and data(second) == b"3"
        else:
            with pytest.raises(OSError, match="lost what it had confirmed"):
                put(store, b"3")
            assert data(second) == b"1" and not store.vouches()
        store.close()
    finally:
        first.close()
        second.close()


def test_a_commit_that_no_standby_has_is_not_confirmed(server: Server) -> None:
    store = PostgresStore(server.dsn)
    assert put(store, b"1", new=True)
    server.sql("alter system set synchronous_standby_names = 'missing'")
    server.sql("select pg_reload_conf()")
    try:
        with in_a_second(store), pytest.raises(OSError) as caught:
            until(lambda: not put(store, b"2"))
        assert not isinstance(caught.value, hopline.StoreNotOpened)
    finally:
        server.sql("set synchronous_commit = local")
        server.sql("alter system reset synchronous_standby_names")
        server.sql("select pg_reload_conf()")
        server.sql("reset synchronous_commit")
    assert put(store, b"3") and data(server) == b"3"
    store.close()


def test_claims_end_while_the_server_is_away_and_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"_RENEW": 0.3, "_LOOK": 0.1}.items():
        monkeypatch.setattr(_postgres, name, seconds)
    server = Server()
    try:
        store, told = PostgresStore(server.dsn), threading.Event()
        store.on_lost(lambda names=None: told.set())
        assert put(store, b"1", new=True) and store.vouches()
        first = store._held.owner
        [[lives]] = server.sql("select until from hopline.owners")
        until(lambda: server.sql("select until > %s::timestamptz + interval '1 second' from hopline.owners", lives) == [(True,)])
        assert put(store, b"2") and store._held.owner is first and not told.is_set()
        server.stop()
        with in_a_second(store), pytest.raises(OSError):
            put(store, b"3")
        # As 55 seconds after the last sign of life, by its own clock.
        first.until = _postgres.now() + 30
        assert store.vouches() and not told.is_set()
        first.until = _postgres.now() + 24
        assert not store.vouches() and not told.is_set()
        first.until = _postgres.now() + 5
        assert told.wait(60) and store._held.owner is not first
        server.start()
        # The store is not busy with the owner that it was, which lives on for the server.
        assert not put(store, b"4") and store.claim([NAME], 1) == {NAME: b"2"} and put(store, b"5") and store.vouches()
        store.close()
    finally:
        server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the clock is changed by the way of Linux")
def test_a_server_that_is_set_back_by_an_hour_spends_on_no_earlier_day_and_frees_what_the_dead_had() -> None:
    server = Server()
    library = server.folder / "clock_off.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(Path(__file__).with_name("clock_off.c"))], check=True)
    library.chmod(0o755)
    try:
        living, dead = PostgresStore(server.dsn), PostgresStore(server.dsn)
        assert put(living, b"1", new=True) and put(dead, b"1", OTHER, new=True)
        # As if it were a minute after midnight.
        [[today]] = server.sql("select (extract(epoch from now()) / 86400)::int + 1")
        assert living.spend("5e", "e", Decimal(1), day=today, cap=None) == today
        server.stop()
        server.start(LD_PRELOAD=str(library), CLOCK_OFF="-3600")
        [[off]] = server.sql("select extract(epoch from now())")
        assert -3700 < float(off) - time.time() < -3500
        assert living.spend("5e", "f", Decimal(1), day=None, cap=None) == today
        assert put(living, b"2") and living.vouches()
        other = PostgresStore(server.dsn)
        assert other.claim([OTHER], 1) == hopline.OwnedElsewhere(b"1")
        # The name of the dead one is free a minute after that, and not after an hour.
        assert server.sql("select until < now() + interval '61 seconds' from hopline.owners where id = %s", dead._held.owner.id) == [(True,)]
        for store in (living, other):
            store.close()
    finally:
        server.close()


def test_a_full_disk_is_a_call_that_was_not_done(server: Server) -> None:
    store = PostgresStore(server.dsn)
    assert put(store, b"1", new=True)
    # The table is larger than any file of the log, and may not grow.
    server.sql("alter table hopline.names alter data set storage plain")
    server.sql("insert into hopline.names (name, data) select '5e.r' || md5(n::text), convert_to(repeat('x', 1900), 'UTF8') from generate_series(1, 10000) n")
    [[size]] = server.sql("select pg_relation_size('hopline.names')")
    assert size > 17_000_000 and start("prlimit", "--pid", str(backend(store)), f"--fsize={size}").wait(60) == 0
    free = 0
    with pytest.raises(hopline.StoreNotOpened, match="could not extend"):
        for free in range(1000):
            assert put(store, os.urandom(1900), f"5e.k{free:032x}", new=True)
    assert data(server, f"5e.k{free:032x}") is None
    assert len(store.list("5e", after=None, open=True).entries) == 500
    store._held.cut()
    assert put(store, os.urandom(1900), f"5e.k{free:032x}", new=True)
    store.close()
    server.sql("alter table hopline.names alter data set storage extended")


def test_a_call_reads_no_more_beside_a_hundred_thousand_names(server: Server) -> None:
    me = uuid.uuid4()
    given = "'{}', {}, {}, now(), interval '10 seconds', interval '1 minute'"
    calls = [
        ("claim", "array['{0}.i00000000000000000000000000000001', '{0}.i00000000000000000000000000000002'], 1, null"),
        ("put", "'{0}.i00000000000000000000000000000001', 'x', false, null, false, null"),
        ("spend", "'{0}', 'e', 1, null, 10, null"),
        ("delete", "'{0}.i00000000000000000000000000000001', null"),
    ]
    number = 0

    def pages(space: str) -> list[int]:
        nonlocal number
        read = []
        for call, more in calls:
            number += 1
            statement = f"explain (analyze, buffers, format json) select * from hopline.{call}({given.format(me, number, number - 1)}, {more.format(space)})"
            [[plan]] = server.sql(statement)
            read.append(plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"])
        listed = server.sql(f"explain (analyze, buffers, format json) select * from hopline.list('{me}', '{space}', null, true, null)")
        return [*read, listed[0][0][0]["Plan"]["Shared Hit Blocks"] + listed[0][0][0]["Plan"]["Shared Read Blocks"]]

    pages("5e")  # the server then knows the pages
    before = pages("5f")
    fill = "insert into hopline.names (name, data, keep_until) select '60.i' || md5(n::text), 'x', case when n %% 10 > 0 then now() + interval '1 day' end from generate_series(1, 100000) n"
    server.sql(fill)
    server.sql("insert into hopline.entries select '60', n %% 30, 'e' || n, 1 from generate_series(1, 100000) n")
    server.sql("analyze hopline.names, hopline.entries")
    pages("61")
    after = pages("62")
    print({"pages read by claim, put, spend, delete, list": (before, after)})
    assert all(now <= was + 20 for was, now in zip(before, after, strict=True)), (before, after)
    store = PostgresStore(server.dsn)
    page, seen = store.list("60", after=None, open=True), 0
    while page.entries:
        seen += len(page.entries)
        page = store.list("60", after=page.entries[-1].name, open=True)
    assert seen == 10_000
    store.close()


def test_what_is_over_is_swept_and_nothing_else(server: Server) -> None:
    store, dead = PostgresStore(server.dsn), PostgresStore(server.dsn)
    for number, keep in enumerate((None, 1.0, 3 * 86400.0)):
        store.put(f"5e.k{number:032x}", b"x", new=True, keep_for=keep, release=True)
    store.put("5e.k" + "f" * 32, b"x", new=True, keep_for=1.0, release=False)
    dead.claim([NAME, OTHER], 2)
    dead.put(OTHER, b"x", new=False, keep_for=None, release=False)
    server.die(dead)
    for day in (1, 60, 100):
        store.spend("5e", "e", Decimal(1), day=day, cap=None)
    server.sql("update hopline.names set keep_until = keep_until - interval '2 days'")
    server.sql("update hopline.owners set until = until - interval '2 hours', last_seen = now() - interval '41 days' where id = %s", dead._held.owner.id)
    server.sql("update hopline.format set swept_at = now() - interval '11 minutes'")
    for _ in range(2):
        [(alive,)] = server.sql("select alive from hopline.renew(%s, 0, null, interval '10 seconds', true)", store._held.owner.id)
        assert alive
    left = {f"5e.k{0:032x}", f"5e.k{2:032x}", "5e.k" + "f" * 32, OTHER}
    assert {name for (name,) in server.sql("select name from hopline.names")} == left
    assert server.sql("select day from hopline.days where day >= 0 order by day") == [(60,), (100,)] and server.sql("select count(*) from hopline.entries") == [(2,)]
    # The owner of a name stays.
    assert server.sql("select count(*) from hopline.owners") == [(2,)]
    store.close()


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match="pip install"):
        PostgresStore("postgresql://worker@/db")


def test_a_child_of_a_fork_owns_nothing_and_leaves_the_connection_alone(server: Server) -> None:
    store = PostgresStore(server.dsn)
    assert put(store, b"1", new=True)
    pid = backend(store)
    child = os.fork()
    if child == 0:
        try:
            found = store.claim([NAME], 1)
            store.close()
            os._exit(0 if found == hopline.OwnedElsewhere(b"1") else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert put(store, b"2") and server.sql("select count(*) from pg_stat_activity where pid = %s", pid) == [(1,)]
    store.close()


def test_clients_that_share_one_object_or_pickle_it_are_refused(server: Server) -> None:
    store = PostgresStore(server.dsn)
    with hopline.AgentClient(**SOUND, http=never, store=store), pytest.raises(hopline.Misuse):
        hopline.AgentClient(**SOUND, http=never, store=store)
    with pytest.raises(TypeError):
        pickle.dumps(PostgresStore(server.dsn))


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://worker:canary@127.0.0.1:1/db",
        "postgresql://worker:ca/nary@127.0.0.1:1/db",
        "postgresql://worker:x#canary@127.0.0.1:1/db",
        "postgresql://worker:x?canary@127.0.0.1:1/db",
        "postgresql://worker:canary%zz@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?password=canary",
        "host=127.0.0.1 port=1 password=canary",
        "host=127.0.0.1 port=1 password=x canary",
        "host=127.0.0.1 port=canary",
    ],
)
def test_no_password_shows(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "_REACHING", 0.1)
    told: list[Any] = []
    try:
        store = PostgresStore(dsn)
        told += [store, vars(store._held), store._address, [getattr(store._address, name) for name in store._address.__slots__]]
        store.list("5e", after=None, open=True)
    except (ValueError, OSError) as error:
        told += [error, error.__cause__, error.args]
    assert isinstance(told[-3], ValueError | hopline.StoreNotOpened) and told[-2] is None
    if "port=canary" not in dsn:
        assert not [word for word in ("canary", "nary@", "x#", "x?") if word in repr(told)], told


@pytest.mark.parametrize(("dsn", "said"), [("postgresql://worker@/template1?host={0}", "has no tables of Hopline"), ("postgresql://nobody@/postgres?host={0}", "nobody")])
def test_a_database_that_is_not_ready_says_so_and_nothing_is_sent(server: Server, dsn: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_postgres, "_REACHING", 0.1)
    with hopline.AgentClient(**SOUND, http=never, store=PostgresStore(dsn.format(server.folder))) as agent, pytest.raises(hopline.HoplineError) as caught:
        agent.create_session(**BUY)
    assert (caught.value.kind, caught.value.effect) == ("store", "none") and said in str(caught.value.__notes__)


def test_a_role_of_a_worker_can_do_no_more_than_call(server: Server) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as worker:
        for statement in ("select * from hopline.names", "delete from hopline.days", "create table hopline.mine ()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                worker.execute(statement)  # type: ignore[arg-type]
        # Their parts work for none but the functions.
        with pytest.raises(psycopg.Error):
            worker.execute("select hopline.take(gen_random_uuid(), 'x', true, now())")
    server.sql("update hopline.format set works_from = 2")
    try:
        with pytest.raises(hopline.StoreNotOpened, match="newer version"):
            PostgresStore(server.dsn).list("5e", after=None, open=True)
    finally:
        server.sql("update hopline.format set works_from = 1")
