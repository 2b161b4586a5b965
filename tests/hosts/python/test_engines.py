"""A fleet under an engine, over PostgreSQL: its workers are killed, stopped and rolled, and the server is away for a while. With
HOPLINE_FLEET_SECONDS this is the whole story: ten kills, five stops beyond claims of a minute, and so many seconds without the server.
"""

import os
import random
import signal
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import hopline
import pytest
from conftest import BUY
from engines import REDIS, Celery, Dask, Engine, Site, running as running_engine, wait
from fleet import SECONDS, living
from hopline import PostgresStore
from postgres import Server, needs_postgres, running, server
from sandbox import Sandbox

TTL = 60 if SECONDS else 9
ROUNDS, KILLS = (5, 2) if SECONDS else (1, 2)
SIZE, LEFT = 6, 2
BUSY = 10
"""Seconds that a machine adds whose processors others want, too."""
PRICE = Decimal(2)

pytestmark = needs_postgres
needs_redis = pytest.mark.skipif(not REDIS and os.environ.get("CI") != "true", reason="redis-server is not installed; HOPLINE_REDIS_SERVER may name the program")


class Story:
    def __init__(self, engine: Engine, site: Site, server: Server, sandbox: Sandbox) -> None:
        self.engine, self.site, self.server, self.sandbox = engine, site, server, sandbox
        self.given, self.most, self.ended = 0, 0, 0
        self.was_stopped: set[int] = set()
        self.told: dict[str, Any] = {"takeover": []}
        self._begun, self._is_over = time.monotonic(), threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._give, self._watch)]
        for thread in self._threads:
            thread.start()

    def note(self, what: str) -> None:
        self.told[what] = round(time.monotonic() - self._begun)

    def _give(self) -> None:
        """There is always work to do."""
        while not self._is_over.wait(0.1):
            if (more := 40 - (self.given - self.read())) > 0:
                self.engine.give([f"{self.site.url}/page/{self.given + number}" for number in range(more)])
                self.given += more

    def _watch(self) -> None:
        while not self._is_over.wait(0.03):
            self.most = max(self.most, living(self.sandbox))

    def read(self) -> int:
        return len({page.path for page in list(self.site.pages)})

    def alive(self) -> dict[str, str]:
        return {one["exit"]: one["session_id"] for one in self.sandbox.state()["sessions"] if one["status"] in ("creating", "active")}

    def uses_all(self, since: float, without: set[int]) -> bool:
        used = {page.exit for page in self.site.since(since) if page.process not in without}
        return len(alive := self.alive()) == SIZE and used >= set(alive)

    def end_one(self) -> None:
        """A session ends, as when its traffic is used up."""
        with hopline.AgentClient(**self.sandbox.account) as agent:
            agent.terminate_session(session_id=random.choice(list(self.alive().values())))
        self.ended += 1

    def kill_and_stop(self) -> None:
        """Some are killed while a session is being replaced, and another one is stopped for longer than its claims last."""
        processes = self.engine.processes()
        *victims, stopped = random.sample(processes, KILLS + 1)
        before = set(self.alive())
        self.end_one()
        for process in victims:
            os.kill(process, signal.SIGKILL)
        os.kill(stopped, signal.SIGSTOP)
        begun = time.monotonic()
        self.was_stopped.add(stopped)
        wait(lambda: self.uses_all(begun, {*victims, stopped}), "all six sessions, in the hands of those that live")
        first = {page.exit: page.begun for page in reversed(self.site.since(begun)) if page.process not in {*victims, stopped}}
        self.told["takeover"].append(took := round(max(first[exit] for exit in before & set(self.alive())) - begun, 1))
        time.sleep(max(0.0, begun + TTL + 3 - time.monotonic()))
        os.kill(stopped, signal.SIGCONT)
        woken = time.monotonic()
        wait(lambda: any(page.process == stopped for page in self.site.since(woken + 1)), "pages of the one that was stopped")
        # A short story has no limit: on a slow machine the processes that take over are slow, too.
        assert not SECONDS or took <= TTL + 5 + BUSY, self.told

    def roll(self) -> None:
        self.engine.roll(4 if SECONDS else 2)
        self.wait_for_all("after the last restart")

    def lose_server(self, seconds: float) -> None:
        self.server.stop()
        time.sleep(seconds)
        self.server.start()
        self.wait_for_all("after the server")

    def wait_for_all(self, when: str) -> None:
        begun = time.monotonic()
        wait(lambda: self.uses_all(begun, set()), f"all six sessions, {when}")
        self.told[when] = round(time.monotonic() - begun, 1)

    def reach_the_cap(self) -> None:
        for number in range(LEFT + 1):
            before = self.sandbox.charges()
            self.end_one()
            if number < LEFT:
                wait(lambda: self.sandbox.charges() == before + 1 and len(self.alive()) == SIZE, "another session")  # noqa: B023
        # The next one is over the cap.
        begun = time.monotonic()
        wait(lambda: len(self.site.since(begun)) > 50, "pages")

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        wait(lambda: self.read() == self.given, "the last pages")


def is_over_cap(pool: hopline.Pool) -> bool:
    with pytest.raises(hopline.Unavailable):
        pool.acquire(timeout=0.5)
    return (hold := pool.status().hold) is not None and hold.reason == "cap"


@pytest.mark.parametrize("kind", [pytest.param(Celery, marks=needs_redis), Dask])
def test_a_fleet_loses_no_page_no_session_and_no_cent(kind: Any, server: Server, sandbox: Sandbox, tmp_path: Path) -> None:
    site = Site(1.0 if SECONDS else 0.4)
    bought = SIZE + ROUNDS + LEFT
    account = {"HOPLINE_BASE_URL": sandbox.account["base_url"], "HOPLINE_API_KEY": sandbox.account["api_key"]}
    cap = PRICE * (bought + 1) - Decimal("0.01")
    told = {"HOPLINE_STORE": server.dsn, "HOPLINE_DAILY_CAP_USD": str(cap), "HOPLINE_FLEET_TTL": str(TTL)}
    with running_engine(kind, {**account, **told}, tmp_path) as engine:
        story = Story(engine, site, server, sandbox)
        try:
            story.wait_for_all("at the beginning")
            for _ in range(ROUNDS):
                story.kill_and_stop()
            story.note("kills and stops")
            assert site.overlaps(without=story.was_stopped) == []
            story.roll()
            story.note("restarts")
            story.lose_server(SECONDS or 5)
            assert sandbox.charges() == SIZE + ROUNDS
            story.reach_the_cap()
            story.note("the server away, and the cap")
        finally:
            story.end()
        engine.close()
        print(kind.__name__, story.told, {"pages": story.given, "read again": len(site.pages) - story.given})
    [[spent]] = server.sql("select sum(sum) from hopline.days where day > 0")
    assert (sandbox.charges(), len(sandbox.state()["sessions"]), spent, story.most) == (bought, bought, PRICE * bought, SIZE)
    # Workers that closed have left all they had, and the next client finds it.
    assert server.sql("select count(*) from hopline.names where owner is not null") == [(0,)]
    with hopline.AgentClient(**sandbox.account, store=PostgresStore(server.dsn), daily_cap_usd=cap) as agent:
        with agent.open_pool("prices", size=SIZE, **BUY, quantity=Decimal("0.5"), protocol="http", use_with="requests") as pool:
            leases = [pool.acquire(timeout=300) for _ in range(SIZE - 1)]
            assert {lease.session_id for lease in leases} == set(story.alive().values())
            wait(lambda: is_over_cap(pool), "the cap, to the cent")
            for lease in leases:
                lease.release()
    assert sandbox.charges() == bought
    site.close()
