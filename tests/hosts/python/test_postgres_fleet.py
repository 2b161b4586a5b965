"""Clients that share a database: what they buy together, what becomes of those that are killed, and the command over it."""

import asyncio
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import hopline
import pytest
from canned import until, until_dropped
from command_line import Shell
from conftest import BUY
from hopline import PostgresStore
from postgres import Server, needs_postgres, running, server, together
from sandbox import Sandbox

pytestmark = needs_postgres


def test_clients_buy_an_intent_once_and_keep_a_cap_to_the_cent(server: Server, sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        [price] = [Decimal(one.price or 0) for one in agent.list_products().items if one.product_no == BUY["product_no"]]
    # Seven of the twelve intents fit, and each is wanted by four clients at once.
    cap = price * 7 + price / 2
    intents = [f"job-{number}" for number in range(12)]

    def blocking() -> dict[str, str]:
        with hopline.AgentClient(**sandbox.account, store=PostgresStore(server.dsn), daily_cap_usd=cap) as agent:
            return {intent: one(lambda intent=intent: agent.create_session(**BUY, intent=intent, quantity=1)) for intent in intents}  # type: ignore[misc]

    def in_tasks() -> dict[str, str]:
        async def life() -> dict[str, str]:
            async with hopline.AsyncAgentClient(**sandbox.account, store=PostgresStore(server.dsn), daily_cap_usd=cap) as agent:
                calls = [agent.create_session(**BUY, intent=intent, quantity=1) for intent in reversed(intents)]
                came = await asyncio.gather(*calls, return_exceptions=True)
                return dict(zip(reversed(intents), map(told, came), strict=True))

        return asyncio.run(life())

    lives = together(blocking, in_tasks, blocking, in_tasks)
    assert all(isinstance(life, dict) for life in lives), lives
    bought = {intent: {life[intent] for life in lives} - {"Busy", "BudgetExceeded", "Refused", "Invalid"} for intent in intents}
    assert all(len(sessions) <= 1 for sessions in bought.values()), bought
    [[spent]] = server.sql("select sum(sum) from hopline.days where day > 0")
    assert sandbox.charges() == len([1 for sessions in bought.values() if sessions]) == 7 and spent == price * 7
    assert server.sql("select count(*) from hopline.names where owner is not null") == [(0,)]


def one(call: object) -> str:
    try:
        return told(call())  # type: ignore[operator]
    except hopline.HoplineError as error:
        return told(error)


def told(came: object) -> str:
    return came.session_id if isinstance(came, hopline.Session) else type(came).__name__


HOLDER = """
import sys, threading
import hopline
agent = hopline.AgentClient(base_url=sys.argv[2], api_key=sys.argv[3], store=hopline.PostgresStore(sys.argv[1]))
print(agent.open_session(session_type="dynamic", product_no="dynamic-world", intent="job-1").session_id, flush=True)
threading.Event().wait()
"""


def test_what_a_killed_worker_held_is_busy_for_a_minute_and_then_anybodys(server: Server, sandbox: Sandbox) -> None:
    command = [sys.executable, "-c", HOLDER, server.dsn, sandbox.account["base_url"], sandbox.account["api_key"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        session = holder.stdout.readline().strip()
        holder.kill()
    assert session
    with hopline.AgentClient(**sandbox.account, store=PostgresStore(server.dsn)) as agent:
        with pytest.raises(hopline.Busy) as caught:
            agent.open_session(**BUY, intent="job-1")
        assert caught.value.session_id == session
        [[left]] = server.sql("select extract(epoch from until - now()) from hopline.owners where id in (select owner from hopline.names where owner is not null)")
        assert 0 < left <= 60
        server.sql("update hopline.owners set until = now() where until < now() + interval '60 seconds' and id in (select owner from hopline.names)")
        assert agent.open_session(**BUY, intent="job-1").session_id == session
        # A client that closes lets go at once.
        agent.close()
    with hopline.AgentClient(**sandbox.account, store=PostgresStore(server.dsn)) as agent:
        assert agent.open_session(**BUY, intent="job-1").session_id == session
    assert sandbox.charges() == 1


def test_a_pool_of_two_clients_has_no_more_sessions_than_its_size(server: Server, sandbox: Sandbox) -> None:
    stores = [PostgresStore(server.dsn) for _ in range(2)]
    agents = [hopline.AgentClient(**sandbox.account, store=store) for store in stores]
    pools = [agent.open_pool("shop", size=2, **BUY, daily_cap_usd=1000) for agent in agents]
    for _ in range(3):
        leases = [pool.acquire(timeout=60) for pool in pools]
        assert len({lease.session_id for lease in leases}) == 2
        for lease in leases:
            lease.release()
    for agent in agents:
        agent.close()
    assert sandbox.charges() == 2
    with hopline.AgentClient(**sandbox.account, store=PostgresStore(server.dsn)) as agent, agent.open_pool("shop", size=2, **BUY, daily_cap_usd=1000) as pool:
        with pool.acquire(timeout=60):
            assert sandbox.charges() == 2


def test_a_client_that_is_dropped_lets_go(server: Server, sandbox: Sandbox) -> None:
    agent = hopline.AgentClient(**sandbox.account, store=PostgresStore(server.dsn))
    agent.open_session(**BUY, intent="job-1")
    assert server.sql("select count(*) from hopline.names where owner is not null") == [(1,)]
    with pytest.warns(ResourceWarning, match="without being closed") as warned:
        del agent
        until_dropped(warned)
        until(lambda: server.sql("select count(*) from hopline.names where owner is not null") == [(0,)])


POOLED = """
import sys, threading
import hopline
agent = hopline.AgentClient(base_url=sys.argv[2], api_key=sys.argv[3], store=hopline.PostgresStore(sys.argv[1]))
pool = agent.open_pool("shop", size=2, session_type="dynamic", product_no="dynamic-world", daily_cap_usd=1000)
lease = pool.acquire(timeout=60)
print(lease.session_id, flush=True)
threading.Event().wait()
"""


def test_the_command_shows_whose_the_sessions_of_a_pool_are_after_a_worker_was_killed(server: Server, sandbox: Sandbox, tmp_path: Path) -> None:
    shell = Shell(sandbox, tmp_path, HOPLINE_STORE=server.dsn)
    command = [sys.executable, "-c", POOLED, server.dsn, sandbox.account["base_url"], sandbox.account["api_key"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        session = worker.stdout.readline().strip()
        counts, buys, slot = shell.run("pool", "status", "shop").out.splitlines()
        assert counts == "shop: 2 slots: 0 mine / 1 others / 0 free, 0 in doubt, 1 empty" and buys == "buys: yes"
        assert session in slot and slot.endswith("with a program")
        worker.kill()
    # For a minute nobody can know that it is gone.
    assert shell.run("pool", "status", "shop").out.splitlines()[2] == slot
    server.sql("update hopline.owners set until = now() where id in (select owner from hopline.names)")
    counts, _, slot = shell.run("pool", "status", "shop").out.splitlines()
    assert counts == "shop: 2 slots: 0 mine / 0 others / 1 free, 0 in doubt, 1 empty" and session in slot and slot.endswith("free")
    checked = shell.run("store", "check", "--json", code=1).json["database"]  # the server of the tests does not flush
    assert (checked["owned"], checked["left"]) == (0, 1)


def test_the_command_works_over_a_database(sandbox: Sandbox, tmp_path: Path) -> None:
    server = Server(is_ready=False)
    try:
        owner = Shell(sandbox, tmp_path, HOPLINE_STORE=server.admin_dsn.replace("postgres@", "postgres:canary@"))
        assert "has no tables of Hopline: `hopline store init` makes them" in owner.run("sessions", code=1).err
        made = owner.run("store", "init", "--worker", "worker").out
        assert made == f"the tables in `{server.admin_dsn}` are made\n"
        assert owner.run("store", "init", "--json").json == {"store": server.admin_dsn, "made": False}
        assert 'grant usage on schema "hopline" to "worker"' in owner.run("store", "init", "--worker", "worker", "--print").out
        worker = Shell(sandbox, tmp_path, HOPLINE_STORE=server.dsn)
        buy = ("buy", BUY["product_no"], "--quantity", "0.5", "--max-unit-price", "100", "--intent", "job-1")
        worker.run(*buy)
        worker.run(*buy)
        assert sandbox.charges() == 1 and "job-1" in worker.run("sessions").out
        checked = worker.run("store", "check", code=1)  # the server of the tests does not flush
        assert "1 record\n" in checked.out and "fsync" in checked.out and "the role `worker` may call them" in checked.out
        told = worker.run("store", "check", "--json", code=1).json
        assert (told["records"], told["database"]["names"], told["database"]["owned"], told["database"]["is_owner"]) == ({"session": 1}, 1, 0, False)
        other = Shell(sandbox, tmp_path, HOPLINE_STORE=server.dsn)
        assert "1 record was not looked at" in other.run("doubts", "--account", "other", code=3).out
        refused = other.run("store", "init", code=1).err
        assert "permission denied" in refused or "must be owner" in refused
        away = Shell(sandbox, tmp_path).run("sessions", "--store", "postgresql://worker:canary@127.0.0.1:1/db", code=1).err
        assert "can't be reached" in away and "canary" not in away
        worker.run("end", "job-1", "--yes")
    finally:
        server.close()
