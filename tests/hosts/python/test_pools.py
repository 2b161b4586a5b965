"""Pools over real sockets: what is lent, what is given back whatever happens, and that work goes on while nobody calls."""

import asyncio
import gc
import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import hopline
import pytest
import requests
from canned import until
from sandbox import Sandbox

SHOP: dict[str, Any] = {"session_type": "dynamic", "product_no": "dynamic-world", "protocol": "http", "daily_cap_usd": 10_000}
LIVING = ("creating", "active")


def fetch(url: str, lease: hopline.Lease) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, **lease.proxy.for_requests(), timeout=10)


def living(sandbox: Sandbox) -> int:
    return sum(session["status"] in LIVING for session in sandbox.state()["sessions"])


def adds_up(status: hopline.PoolStatus, size: int) -> bool:
    counts = (status.ready, status.leased, status.creating, status.changing, status.resting, status.in_doubt, status.empty)
    return size == status.size == sum((*counts, status.with_others, status.free_in_store, status.unknown))


def test_what_is_lent_is_used_observed_and_rotated(sandbox: Sandbox) -> None:
    site = sandbox.ready["target_url"]
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=2, **SHOP) as pool:
        with pool.acquire(target="shop.example") as lease:
            exits = {session["session_id"]: session["exit"] for session in sandbox.state()["sessions"]}
            answer = fetch(site, lease)
            assert answer.json()["address"] == exits[lease.session_id] and lease.observe(answer) == "keep"
            assert lease.valid and lease.target == "shop.example" and "password" not in repr(lease)
            lease.data["cookie"] = "a"
            first, generation = lease.session_id, lease.generation
            sandbox.control("target", {"block": exits[first]})
            blocked = fetch(site, lease)
            assert blocked.status_code == 403 and lease.observe(blocked) == "give_back"
            # An exit never changes under a lease.
            assert lease.valid and sandbox.times("rotate_session") == 0
        assert not lease.valid and lease.observe(200) == "give_back"
        until(lambda: sandbox.times("rotate_session") == 1)
        seen = {}
        until(lambda: pool.status().ready == 1)
        with pool.acquire(target="shop.example") as one, pool.acquire(target="shop.example") as other:
            seen = {one.session_id: one, other.session_id: other}
            assert len(seen) == 2 and seen[first].generation > generation and seen[first].data == {}
            assert fetch(site, seen[first]).status_code == 200
            status = pool.status()
            assert status.leased == 2 and adds_up(status, 2) and {slot.state for slot in status.slots} == {"leased"}
            with pytest.raises(hopline.Unavailable) as caught:
                pool.acquire(timeout=0.2)
            assert caught.value.operation == "acquire" and caught.value.effect == "none"
        with pytest.raises(hopline.Invalid, match="daily_cap_usd"):
            agent.open_pool("other", size=1, session_type="dynamic", product_no="dynamic-world")
        with pytest.raises(hopline.Invalid, match="`protocol` http"):
            agent.open_pool("other", size=1, **{**SHOP, "protocol": "socks5"}, use_with="aiohttp")
        pool.pause()
        hold = pool.status().hold
        assert hold is not None and hold.reason == "paused"
        pool.resume()
        assert pool.status().hold is None
    with pytest.raises(hopline.Misuse):
        pool.acquire()
    assert living(sandbox) == sandbox.charges() == 2


def test_the_same_in_tasks_and_a_drained_pool_leaves_no_session(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            async with agent.open_pool("shop", size=3, **SHOP) as pool:
                async with pool.acquire(target="shop.example", key="user-1") as lease:
                    lease.data["cookie"] = "a"
                    assert lease.observe(200) == "keep" and (await pool.status()).leased == 1
                async with pool.acquire(target="shop.example", key="user-1") as again:
                    assert again.session_id == lease.session_id and again.data == {"cookie": "a"}
                held = [await pool.acquire() for _ in range(3)]
                assert len({one.session_id for one in held}) == 3 and adds_up(await pool.status(), 3)
                for one in held:
                    one.release()
                await pool.drain()
                with pytest.raises(hopline.Misuse):
                    await pool.acquire()

    asyncio.run(life())
    assert living(sandbox) == 0 and sandbox.charges() == 3


def test_opening_a_pool_buys_nothing(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent:
        pool = agent.open_pool("shop", size=50, **SHOP)
        time.sleep(2)
        assert sandbox.charges() == 0 and (pool.status().size, pool.status().unknown) == (50, 50)
        pool.close()


def test_a_program_that_never_calls_while_it_works_finds_its_sessions_ready(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=4, keep_ready=4, **SHOP) as pool:
        until(lambda: [session["status"] for session in sandbox.state()["sessions"]].count("active") == 4)
        time.sleep(3)
        assert pool.status().ready == 4
        assert pool.wait_ready(4, timeout=10).ready == 4

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent, agent.open_pool("tasks", size=4, keep_ready=4, **SHOP) as pool:
            while [session["status"] for session in sandbox.state()["sessions"]].count("active") < 8:
                await asyncio.sleep(0.05)
            await asyncio.sleep(3)
            assert (await pool.status()).ready == 4

    asyncio.run(asyncio.wait_for(life(), 60))
    assert sandbox.charges() == 8


def test_a_lease_that_is_forgotten_is_taken_back(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=1, **SHOP) as pool:
        lease = pool.acquire()
        session_id = lease.session_id
        loop: list[Any] = [lease]
        loop.append(loop)
        del lease, loop
        gc.collect()
        assert pool.acquire(timeout=10).session_id == session_id
        gc.collect()
        until(lambda: pool.status().ready == 1)


def test_closing_leaves_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
        pool = agent.open_pool("shop", size=3, keep_ready=3, **SHOP)
        pool.wait_ready(3)
        held = [pool.acquire() for _ in range(3)]
        waiting = threading.Thread(target=lambda: pytest.raises(hopline.Cancelled, pool.acquire))
        waiting.start()
        until(lambda: pool.status().waiting == 1)
        pool.close(grace=0.2)
        waiting.join(10)
        assert not waiting.is_alive() and not any(lease.valid for lease in held)
        # Without a pool nobody works for one, and a client that is used on does not need to be closed for that.
        assert agent._engine.carrier() is None
        sessions = {lease.session_id for lease in held}
        with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as other:
            with other.open_pool("shop", size=3, **SHOP) as again:
                assert {again.acquire(timeout=10).session_id for _ in range(3)} <= sessions
    assert sandbox.charges() == 3
    until(lambda: not [thread for thread in set(threading.enumerate()) - before if thread.name == "hopline-store"])


def test_a_pool_that_is_closed_takes_back_the_leases_of_its_own_thread_and_waits_for_those_of_others(sandbox: Sandbox) -> None:
    came: list[float] = []

    def use(lease: hopline.Lease, seconds: float = 2) -> None:
        with lease:
            entered.set()
            time.sleep(seconds)
            assert lease.valid
            came.append(time.monotonic())

    with hopline.AgentClient(**sandbox.account) as agent:
        for end in ("close", "drain"):
            entered = threading.Event()
            with agent.open_pool(end, size=3, **SHOP) as pool:
                mine, theirs = pool.acquire(), pool.acquire()
                using = threading.Thread(target=use, args=(theirs,))
                using.start()
                assert entered.wait(60)
                if end == "drain":
                    pool.drain(30)
            # The call has waited for the other thread, and for no longer.
            assert 0 <= time.monotonic() - came.pop() < 9 and not mine.valid and not theirs.valid
            using.join(60)
        begun = time.monotonic()
        with pytest.raises(ZeroDivisionError), agent.open_pool("fails", size=3, **SHOP) as pool:
            mine, theirs, entered = pool.acquire(), pool.acquire(), threading.Event()
            using = threading.Thread(target=lambda: pytest.raises(AssertionError, use, theirs, 15))
            using.start()
            assert entered.wait(60)
            begun = time.monotonic()
            1 / 0  # noqa: B018
        # Nothing is waited for after an exception: the grace is ten seconds.
        assert time.monotonic() - begun < 9 and not mine.valid and not theirs.valid
        using.join(60)


def test_a_pool_that_is_closed_takes_back_the_leases_of_its_own_task_and_waits_for_those_of_others(sandbox: Sandbox) -> None:
    came: list[float] = []

    async def use(lease: hopline.AsyncLease, entered: asyncio.Event) -> None:
        async with lease:
            entered.set()
            # An observation in a thread is the task's all the same.
            assert await asyncio.to_thread(lease.observe, 200) == "keep"
            await asyncio.sleep(2)
            assert lease.valid
            came.append(time.monotonic())

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            async with agent.open_pool("shop", size=3, **SHOP) as pool:
                mine, theirs, entered = await pool.acquire(), await pool.acquire(), asyncio.Event()
                using = asyncio.create_task(use(theirs, entered))
                await entered.wait()
            assert 0 <= time.monotonic() - came.pop() < 9 and not mine.valid and not theirs.valid
            await using

    asyncio.run(life())


def test_a_client_that_is_closed_under_a_pool_ends_its_leases(sandbox: Sandbox) -> None:
    agent = hopline.AgentClient(**sandbox.account)
    with agent.open_pool("shop", size=2, **SHOP) as pool:
        lease = pool.acquire()
        agent.close()
        assert not lease.valid and lease.observe(403) == "give_back"
        lease.release()
        with pytest.raises(hopline.Misuse):
            pool.status()
    assert living(sandbox) == 1


def test_ten_thousand_acquires_that_are_cancelled_in_tasks_lose_no_lease(sandbox: Sandbox) -> None:
    chance, granted = random.Random(7), 0

    async def life() -> None:
        nonlocal granted
        async with hopline.AsyncAgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=8, keep_ready=8, **SHOP) as pool:
            await pool.wait_ready(8)

            async def use() -> None:
                nonlocal granted
                async with pool.acquire(target="shop.example"):
                    granted += 1
                    await asyncio.sleep(chance.random() * 0.003)

            for _ in range(50):
                tasks = [asyncio.create_task(use()) for _ in range(200)]
                for task in tasks:
                    asyncio.get_running_loop().call_later(chance.random() * 0.1, task.cancel)
                await asyncio.gather(*tasks, return_exceptions=True)
            status = await pool.status()
            assert (status.leased, status.waiting) == (0, 0) and adds_up(status, 8)
            held = [await pool.acquire(timeout=10) for _ in range(8)]
            assert len({lease.session_id for lease in held}) == 8
            for lease in held:
                lease.release()
            assert agent._engine.leases.out == {}

    asyncio.run(life())
    assert sandbox.charges() == 8 and 100 < granted < 10_000


def test_ten_thousand_acquires_that_are_given_up_in_threads_lose_no_lease(sandbox: Sandbox) -> None:
    granted = given_up = 0
    counted = threading.Lock()
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=8, keep_ready=8, **SHOP) as pool:
        pool.wait_ready(8)

        def use(seed: int) -> None:
            nonlocal granted, given_up
            chance = random.Random(seed)
            for _ in range(625):
                try:
                    with pool.acquire(target="shop.example", timeout=chance.random() * 0.02):
                        with counted:
                            granted += 1
                        time.sleep(chance.random() * 0.002)
                except hopline.Unavailable:
                    with counted:
                        given_up += 1

        threads = [threading.Thread(target=use, args=(seed,)) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert not any(thread.is_alive() for thread in threads) and granted + given_up == 10_000 and min(granted, given_up) > 100
        status = pool.status()
        assert (status.leased, status.waiting) == (0, 0) and adds_up(status, 8)
        held = [pool.acquire(timeout=10) for _ in range(8)]
        assert len({lease.session_id for lease in held}) == 8
    assert sandbox.charges() == 8


class GivenUp(BaseException):
    """Comes at any moment, as Ctrl-C does."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarm")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt in a callback of the garbage collector
def test_an_acquire_that_is_interrupted_at_any_moment_loses_no_lease(sandbox: Sandbox) -> None:
    is_armed, interrupted = False, 0

    def interrupt(*_: object) -> None:
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise GivenUp

    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=2, keep_ready=2, **SHOP) as pool:
        pool.wait_ready(2)
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
        try:
            end = time.monotonic() + 300
            while interrupted < 1000 and time.monotonic() < end:
                try:
                    is_armed = True
                    lease = pool.acquire(timeout=5)
                    lease.release()
                    is_armed = False
                except GivenUp:
                    interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        # Callers that are interrupted while they give a lease back have it still, and give it back once more.
        lease.release()
        gc.collect()
        until(lambda: (pool.status().leased, pool.status().ready) == (0, 2))
        assert agent._engine.leases.out.keys() <= {lease._command}
    assert interrupted >= 1000 and sandbox.charges() == 2


WORKER = """
import json, sys, time, hopline
account, folder, pool_options = json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
with hopline.AgentClient(**account, store=hopline.FolderStore(folder)) as agent, agent.open_pool("shop", size=8, **pool_options) as pool:
    print("open", flush=True)
    sys.stdin.readline()
    told, held = [], []
    for _ in range(2):
        held.append(pool.acquire(timeout=60))
        told.append(held[-1].session_id)
    print(json.dumps(told), flush=True)
    sys.stdin.readline()
    for lease in held:
        lease.release()
"""


def test_four_processes_on_one_folder_own_eight_together(sandbox: Sandbox, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, json.dumps(sandbox.account), str(tmp_path), json.dumps(SHOP)]
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "open\n"
    told = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        assert worker.stdout is not None
        told += json.loads(worker.stdout.readline())
    assert len(set(told)) == 8 and living(sandbox) == sandbox.charges() == 8
    for worker in workers:
        worker.communicate("\n", timeout=60)
        assert worker.returncode == 0
    # The next client has all of them.
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent, agent.open_pool("shop", size=8, **SHOP) as pool:
        held = [pool.acquire(timeout=10) for _ in range(8)]
        assert {lease.session_id for lease in held} == set(told)
    assert sandbox.charges() == 8


def test_the_data_of_a_lease_outlive_its_release_and_its_process(sandbox: Sandbox, tmp_path: Path) -> None:
    store = hopline.FolderStore(tmp_path)
    with hopline.AgentClient(**sandbox.account, store=store) as agent, agent.open_pool("data", size=1, **SHOP) as pool:
        with pool.acquire() as lease:
            assert lease.data == {}
            lease.data.update(cookies={"a": "1"}, client=object(), odd={1, 2})
        with pool.acquire() as lease:
            assert lease.data["cookies"] == {"a": "1"} and "client" in lease.data
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent, agent.open_pool("data", size=1, **SHOP) as pool, pool.acquire() as lease:
        assert lease.data == {"cookies": {"a": "1"}}
        lease.data["long"] = "x" * 5000
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent, agent.open_pool("data", size=1, **SHOP) as pool, pool.acquire() as lease:
        assert lease.data == {"cookies": {"a": "1"}}, "too much is kept here only"


def test_data_of_an_exit_that_another_client_changed_win_over_those_here(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent, agent.open_pool("data", size=1, **SHOP) as pool:
        with pool.acquire() as lease:
            lease.data.update(cookies="ours", mine=[1], client=(client := object()))

        def elsewhere(change: dict[str, Any] | None) -> tuple[str, int]:
            with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as other:
                with other.open_pool("data", size=1, **SHOP) as theirs, theirs.acquire() as lent:
                    assert "client" not in lent.data
                    if change is not None:
                        lent.data.clear()
                        lent.data.update(change)
            return lent.session_id, lent.generation

        assert elsewhere({"cookies": "theirs"}) == (lease.session_id, lease.generation)
        with pool.acquire() as again:
            assert (again.session_id, again.generation) == (lease.session_id, lease.generation)
            assert again.data == {"cookies": "theirs", "client": client}
            again.data["long"] = "x" * 5000
        # Data that no other client has changed stay as they are here, and so do data that are too long for the store.
        assert elsewhere(None) == (lease.session_id, lease.generation)
        with pool.acquire() as last:
            assert last.data == {"cookies": "theirs", "client": client, "long": "x" * 5000}


def test_a_session_that_is_discarded_is_not_lent_again_and_a_lease_that_is_over_is_not_entered(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("discard", size=2, **SHOP) as pool:
        with pool.acquire() as first:
            first.discard()
        with pytest.raises(hopline.Misuse, match="given back"), first:
            pass
        for _ in range(3):
            with pool.acquire() as lease:
                assert lease.session_id != first.session_id
        with pool.acquire(avoid=lease.session_id) as other:
            assert other.session_id not in (lease.session_id, first.session_id)
        until(lambda: living(sandbox) == 2)


def test_the_callers_own_rule_says_what_a_block_is(sandbox: Sandbox) -> None:
    class Page:
        status_code, text = 200, "are you a robot?"

    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("rule", size=1, blocked=lambda page: "robot" in page.text, **SHOP) as pool:
        with pool.acquire(target="shop.example") as lease:
            assert lease.observe(200) == "keep"
            assert lease.observe(Page()) == "give_back"
            assert (worth_at := lease.retry_at) is not None and worth_at.timestamp() > time.time()
        # A caller who is to wait reads it after the block.
        assert lease.retry_at == worth_at and lease.observe(200) == "give_back" and lease.retry_at == worth_at


def test_what_is_wrong_with_a_pools_settings_is_told_in_the_programs_own_words(sandbox: Sandbox) -> None:
    async def later(page: object) -> bool:
        return False

    with hopline.AgentClient(**sandbox.account) as agent:
        for name, value in {"rotate_after": 0.5, "max_lease": 0, "idle_release": -1}.items():
            with pytest.raises(hopline.Invalid, match=f"open_pool: `{name}` must be at least .* seconds"):
                agent.open_pool("wrong", size=1, **{**SHOP, name: value})
        with pytest.raises(hopline.Invalid, match="open_pool: `use_with`"):
            agent.open_pool("wrong", size=1, **SHOP, use_with="curl_cffy")  # type: ignore[arg-type]
        for rule in ("captcha", later):
            with pytest.raises(TypeError, match="`blocked` must be a function"):
                agent.open_pool("wrong", size=1, **SHOP, blocked=rule)  # type: ignore[arg-type]
        assert agent.list_pools() == []
        with agent.open_pool("right", size=1, **SHOP, rotate_after=1, max_lease=5, idle_release=0) as pool:
            with pool.acquire(target="https://ann:a-password@shop.example/a?key=a-secret") as lease:
                # Data that were put into another place would be lost without a word.
                with pytest.raises(AttributeError):
                    lease.data = {"cookie": "a"}  # type: ignore[misc]
                assert "target='shop.example/a'" in repr(lease) and "a-password" not in repr(lease)
                with pytest.raises(hopline.Unavailable) as caught:
                    pool.acquire(target=lease.target, timeout=0.2)
                assert "a-password" not in str(caught.value) and "a-secret" not in str(caught.value)


def test_a_task_that_tries_again_at_once_in_a_loop_lets_others_run(sandbox: Sandbox) -> None:
    sandbox.control("balance", {"amount": "0"})

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent:
            pool = await agent.open_pool("shop", size=1, **SHOP)

            async def loop(kind: str) -> None:
                begun, failures = time.monotonic(), 0
                enough = asyncio.create_task(asyncio.sleep(0.5))
                while not enough.done() and time.monotonic() - begun < 20:
                    with pytest.raises(hopline.HoplineError) as caught:
                        await pool.acquire(timeout=5)  # before the next trial of a purchase
                    assert caught.value.kind == kind
                    failures += 1
                assert enough.done() and failures > 1

            await loop("unavailable")
            await agent.close()
            await loop("misuse")

    asyncio.run(life())


def test_a_session_whose_product_was_chosen_is_taken_over_by_the_next_program_and_drained(sandbox: Sandbox, tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"size": 2, "product": hopline.cheapest(type="dynamic", max_unit_price=5), "protocol": "http"}

    def program() -> str:
        # The cap allows one purchase, so that another one would be a hold.
        with (
            hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), daily_cap_usd=4) as agent,
            agent.open_pool("shop", **chosen) as pool,
            pool.acquire(timeout=30) as lease,
        ):
            return lease.session_id

    assert len({program() for _ in range(3)}) == 1 and sandbox.charges() == 1
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), daily_cap_usd=4) as agent:
        with agent.open_pool("shop", **chosen) as pool:
            pool.drain(grace=1, everywhere=True)
    assert living(sandbox) == 0 and sandbox.charges() == 1
