"""`PostgresStore` over a real server: what every store must do, also through a pooler, over lines that are cut, in races and late."""

import os
from collections.abc import Sequence
from typing import Any

import hopline
import pytest
import store_suite
from conftest import ROOT
from hopline import PostgresStore
from postgres import PGBOUNCER, Line, Pooler, Server, needs_postgres, once_each, running, server
from sandbox import Sandbox

pytestmark = needs_postgres
CASES = store_suite.cases(ROOT / "tests" / "store")
NAME = "5e.i00000000000000000000000000000001"


class Shop:
    """A store whose clients share a database, with what a case may do to it."""

    can = {"damage", "dies", "leases"}

    def __init__(self, server: Server, dsn: str) -> None:
        server.empty()
        self._server, self._dsn = server, dsn
        self.now_ms = 1_750_000_000_000

    def open(self) -> PostgresStore:
        return PostgresStore(self._dsn, clock=lambda: self.now_ms / 1000)

    def die(self, client: hopline.Store) -> None:
        assert isinstance(client, PostgresStore)
        self._server.die(client)

    def damage(self, name: str, how: str) -> None:
        [[data]] = self._server.sql("select data from hopline.names where name = %s", name)
        damaged = {"cut": data[: len(data) // 2], "empty": b"", "garbage": b"\xff" * len(data)}[how]
        self._server.sql("update hopline.names set data = %s where name = %s", damaged, name)

    def die_in_put(self, client: hopline.Store, name: str, data: bytes) -> None:
        self.die(client)

    def end_claims(self, client: hopline.Store) -> None:
        assert isinstance(client, PostgresStore)
        self._server.end_claims(client)


def run_cases(server: Server, dsn: str, cases: Sequence[tuple[str, store_suite.Json]] = CASES) -> None:
    """Runs cases, and names those that fail."""
    failed = []
    for name, case in cases:
        try:
            store_suite.run(case, Shop(server, dsn))
        except Exception as trouble:
            failed.append(f"{name}: {type(trouble).__name__}: {trouble}")
    assert cases and not failed, "\n".join(failed)


def test_a_database_does_what_every_store_must(server: Server) -> None:
    assert {need for _, case in CASES for need in case.get("needs", [])} <= Shop.can
    run_cases(server, server.dsn)


@pytest.mark.skipif(not PGBOUNCER and os.environ.get("CI") != "true", reason="pgbouncer is not installed; HOPLINE_PGBOUNCER may name the program")
def test_a_database_does_so_behind_a_pooler_and_whatever_its_role_has_by_default(server: Server) -> None:
    for setting in ("default_transaction_isolation = 'repeatable read'", "default_transaction_read_only = on", "bytea_output = 'escape'", "DateStyle = 'SQL, DMY'"):
        server.sql(f"alter role worker set {setting}")
    pooler = Pooler(server)
    try:
        run_cases(server, pooler.dsn)
    finally:
        pooler.close()
        server.sql("alter role worker reset all")


# A connection that is lost costs as much as ten calls. That one is lost after a call was done is the harder of the two.
@pytest.mark.parametrize(("how", "first", "step"), [("after", 0, 3), ("before", 1, 6)])
def test_a_call_whose_connection_is_cut_does_the_same(server: Server, how: str, first: int, step: int) -> None:
    short = [(name, case) for name, case in CASES if not any("fill" in one for one in case["steps"])]
    line = Line(server, once_each(how))
    try:
        run_cases(server, line.dsn, short[first::step])
    finally:
        line.close()


# The page's program.
PROGRAM = """
agent = hopline.AgentClient(store=hopline.PostgresStore("postgresql://worker@db.example/hopline"), daily_cap_usd=40)
"""


def test_the_program_of_the_page_buys_and_leaves_its_record_in_the_database(
    server: Server, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PROGRAM.strip() in (ROOT / "core" / "docs" / "postgres.md").read_text()
    monkeypatch.setenv("HOPLINE_BASE_URL", sandbox.ready["agent_url"])
    monkeypatch.setenv("HOPLINE_API_KEY", sandbox.ready["api_key"])
    made: dict[str, Any] = {"hopline": hopline}
    exec(PROGRAM.replace("postgresql://worker@db.example/hopline", server.dsn), made)
    with made["agent"] as agent:
        agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="page")
    [[count]] = server.sql("select count(*) from hopline.names where data is not null")
    assert (count, sandbox.charges()) == (1, 1)
