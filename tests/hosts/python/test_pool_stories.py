"""Days of programs with pools: targets that block, services that fail halfway, people who pause and drain, and first mistakes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import hopline
import pytest
import requests
from canned import until
from fleet import SECONDS, SHOP, Running, Scraper, all_open, living
from sandbox import Sandbox


class Site:
    """A target that blocks some exits: `a.localhost` blocks each after so many answers, any other name none."""

    def __init__(self, after: int) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        counted = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(handler) -> None:  # noqa: N805
                at = handler.headers["Host"].partition(":")[0], handler.client_address[0]
                with counted:
                    self.answers[at] += 1
                    is_blocked = at[0] == "a.localhost" and self.answers[at] > after
                body = b"a page"
                handler.send_response(403 if is_blocked else 200)
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://{name}.localhost:{self.port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def http() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session


def test_a_target_that_blocks_does_not_make_another_one_wait(sandbox: Sandbox) -> None:
    site, over = Site(3), threading.Event()
    waits: dict[str, list[float]] = {"a": [], "b": []}
    good: Counter[str] = Counter()

    def scrape(pool: hopline.Pool, name: str) -> None:
        while not over.is_set():
            begun = time.monotonic()
            try:
                with pool.acquire(target=f"{name}.localhost", timeout=10) as lease:
                    waits[name].append(time.monotonic() - begun)
                    page = lease.data.setdefault("http", http()).get(site.url(name), **lease.proxy.for_requests(), timeout=10)
                    good[name] += page.status_code == 200
                    lease.observe(page)
                    time.sleep(0.3)
            except hopline.Unavailable:
                waits[name].append(time.monotonic() - begun)

    try:
        with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=2, keep_ready=2, **SHOP) as pool:
            pool.wait_ready(2)
            threads = [threading.Thread(target=scrape, args=(pool, name)) for name in "ab"]
            for thread in threads:
                thread.start()
            time.sleep(max(20, SECONDS))
            over.set()
            for thread in threads:
                thread.join()
        print({name: (len(got), round(max(got), 2), good[name]) for name, got in waits.items()}, sandbox.times("rotate_session"))
        # A lease of `a` takes 0.3 s and a request.
        assert max(waits["b"]) < 2 and good["b"] >= 0.5 * max(20, SECONDS) / 0.35 and good["a"] >= 3 and sandbox.charges() == 2
    finally:
        site.close()


README = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]),) * 2)
import hopline, requests
site, pages = sys.argv[1], int(sys.argv[2])
read = 0
with (
    hopline.AgentClient(store=hopline.FolderStore("records")) as agent,
    agent.open_pool("shop", size=5, session_type="dynamic", product_no="dynamic-world", protocol="http", use_with="requests", daily_cap_usd=400) as pool,
):
    for page in range(pages):
        for _ in range(50):
            with pool.acquire(target="a.localhost") as lease:
                http = lease.data.setdefault("http", requests.Session())
                http.trust_env = False
                response = http.get(site, **lease.proxy.for_requests(), timeout=20)
                advice = lease.observe(response)
            if response.status_code == 200:
                read += 1
                break
print(read)
"""


def test_the_readmes_program_reads_all_pages_with_few_descriptors(sandbox: Sandbox, tmp_path: Path) -> None:
    # Each exit is blocked after 20 pages, so there are many of them.
    site, pages = Site(20), 1500 if SECONDS else 300
    environment = {**os.environ, "HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    try:
        command = [sys.executable, "-c", README, site.url("a"), str(pages), "40"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=30 + pages)
        assert (done.returncode, done.stdout) == (0, f"{pages}\n"), done
    finally:
        site.close()
    assert sandbox.times("rotate_session") >= pages // 20 - 5 and sandbox.charges() <= 5


def test_purchases_without_reads_buy_two_in_the_fleet(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.control("account", {"denied": ["get_session"]})
    told: dict[str, Any] = {"folder": tmp_path, "account": sandbox.account, "threads": 5, "timeout": 5, "options": {"size": 20}}
    with Running(Scraper(number=0, **told)) as one, Running(Scraper(number=1, **told)) as other, Running(Scraper(number=2, **told)) as third:
        programs = [one, other, third]
        all_open(programs)
        time.sleep(max(15, SECONDS))
        assert 1 <= sandbox.charges() <= 2
        # A waiting caller is told why.
        said = [text for program in programs for _, text in program.unserved()]
        assert said and all("does not buy" in text or "bought" in text or "with another client" in text for text in said), said
        sandbox.control("account", {"denied": []})
        with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path / "records")) as agent, agent.join_pool("shop") as pool:
            pool.resume()
        until(lambda: all(program.leases() for program in programs))


def test_an_outage_of_proxies_replaces_few_of_failing_sessions(sandbox: Sandbox) -> None:
    end = time.monotonic() + max(20, SECONDS)
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=5, replace="failing", **SHOP) as pool:

        def scrape() -> None:
            while time.monotonic() < end:
                try:
                    with pool.acquire(target="shop.example", timeout=2) as lease:
                        time.sleep(0.05)
                        lease.observe("proxy")
                except hopline.Unavailable as error:
                    assert error.reason and "5 sessions: " in str(error)

        with ThreadPoolExecutor(5) as executor:
            list(executor.map(lambda _: scrape(), range(5)))
        assert sandbox.charges() <= 5 + 3


def test_a_canary_with_a_limit_of_its_own_stops_nobody_else(sandbox: Sandbox, tmp_path: Path) -> None:
    told: dict[str, Any] = {"folder": tmp_path, "account": sandbox.account, "threads": 4, "work": 0.2, "timeout": 10}
    with Running(Scraper(number=0, **told, options={"size": 8, "daily_cap_usd": 1})) as canary:
        until(lambda: canary.unserved())
        assert "cap" in canary.unserved()[0][1] and not sandbox.charges()
        with Running(Scraper(number=1, **told, options={"size": 8, "max_unit_price": 1})) as cheap, Running(Scraper(number=2, **told, options={"size": 8})) as crawler:
            all_open([crawler])
            until(lambda: len(crawler.leases()) > 50)
            assert not crawler.unserved() and "cap" in canary.unserved()[-1][1] and cheap.opened()
    # Three programs that need four of eight each share them: two each.
    assert sandbox.charges() >= 2


@pytest.mark.parametrize("what", ["pause", "drain", "replace"])
def test_what_a_person_says_holds_at_once_while_a_trial_is_under_way(what: str, tmp_path: Path) -> None:
    sandbox = Sandbox("--seed", "7", "--provisioning-ms", "100000", "--session-limit", "1000", "--rate-limit", "1000000", "--balance", "100000")
    options: dict[str, Any] = {"size": 4}
    store = ["--store", str(tmp_path / "records")]
    environment = {**os.environ, "HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    try:
        with Running(Scraper(folder=tmp_path, account=sandbox.account, number=0, threads=4, timeout=2, options=options)) as program:
            all_open([program])
            until(lambda: sandbox.charges() == 1)
            begun = time.monotonic()
            if what == "replace":
                with (
                    hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path / "records")) as agent,
                    agent.open_pool("shop", **{**SHOP, **options, "country_code": "US"}, on_change="replace") as pool,
                ):
                    assert time.monotonic() - begun < 15
                    assert pool.status().size == 4
                    until(lambda: any("another request" in text for _, text in program.unserved()))
            else:
                hopline_command = str(Path(sys.executable).with_name("hopline"))
                words = [hopline_command, "pool", what, "shop", *store, *(["--yes"] if what == "drain" else [])]
                done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
                took = time.monotonic() - begun
                # The command waits 20 s for the sessions that a drain ends: the one that is still being created lives on, and is named.
                assert done.returncode == 0 and took < (15 if what == "pause" else 40), (done, took)
                assert what == "pause" or "1 still living" in done.stdout, done
                if what == "pause":
                    until(lambda: any("paused" in text for at, text in program.unserved() if at > begun))
            time.sleep(3)
        assert sandbox.charges() == 1
    finally:
        sandbox.close()


def test_a_drained_pool_stays_drained_through_restarts_of_a_supervisor(sandbox: Sandbox, tmp_path: Path) -> None:
    environment = {**os.environ, "HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    store = ["--store", str(tmp_path / "records")]

    def command(*words: str) -> str:
        program = str(Path(sys.executable).with_name("hopline"))
        agrees = ["--yes"] if words[0] in ("drain", "resume") else []
        done = subprocess.run([program, "pool", *words, *store, *agrees], env=environment, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done
        return done.stdout

    told: dict[str, Any] = {"folder": tmp_path, "account": sandbox.account, "threads": 3, "timeout": 2, "options": {"size": 3}}
    with Running(Scraper(number=0, **told)) as program:
        all_open([program])
        until(lambda: len(program.leases()) > 10)
        print(command("drain", "shop"))
        until(lambda: living(sandbox) == 0)
        bought = sandbox.charges()
        # Its callers hear that the pool is closed, and a supervisor starts it again.
        until(lambda: program.failures())
        assert all("Misuse" in text for text in program.failures()), program.failures()
    for number in (1, 2):
        with Running(Scraper(number=number, **told)) as program:
            all_open([program])
            until(lambda: len(program.unserved()) >= 3)
            assert all("paused" in text or "drained" in text for _, text in program.unserved()), program.unserved()
            program.close()
    assert sandbox.charges() == bought and living(sandbox) == 0
    print(command("list"), command("status", "shop"))
    command("resume", "shop")
    with Running(Scraper(number=3, **told)) as program:
        until(lambda: program.leases())


PREFORK = """
import os, sys, json, time, hopline
account, options = json.loads(sys.argv[1]), json.loads(sys.argv[2])
store = hopline.FolderStore("records")
with hopline.AgentClient(**account, store=store) as agent, agent.open_pool("shop", size=4, **options) as pool:
    with pool.acquire() as lease:
        pid = os.fork()
        if pid == 0:
            try:
                pool.acquire(timeout=5)
            except hopline.Misuse as error:
                print("child:", error, flush=True)
            assert not lease.valid and lease.observe(200) == "give_back"
            # A worker makes its own client of the same folder.
            with hopline.AgentClient(**account, store=hopline.FolderStore("records")) as own, own.open_pool("shop", size=4, **options) as mine:
                with mine.acquire(timeout=30) as other:
                    assert other.session_id != lease.session_id
                    print("child: has its own", flush=True)
            sys.exit(7)  # leaves all blocks, as a worker does
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert lease.valid and lease.observe(200) == "keep"
    held = [pool.acquire(timeout=30) for _ in range(4)]
    print("parent:", len({one.session_id for one in held}), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_of_a_program_with_a_pool_has_none_of_it_and_harms_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PREFORK, json.dumps(sandbox.account), json.dumps(SHOP)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said[1:] == ["child: has its own", "parent: 4"] and "fork" in said[0], done
    assert living(sandbox) == sandbox.charges() == 4


INTERRUPTED = """
import sys, json, time, threading, hopline
from concurrent.futures import ThreadPoolExecutor
account, options = json.loads(sys.argv[1]), json.loads(sys.argv[2])
def page(pool, number):
    with pool.acquire(target="shop.example") as lease:
        time.sleep(0.2)
        lease.observe(200)
with hopline.AgentClient(**account, store=hopline.FolderStore("records")) as agent, ThreadPoolExecutor(8) as executor:
    with agent.open_pool("shop", size=2, **options) as pool:
        pages = [executor.submit(page, pool, number) for number in range(400)]
        pages[2].result()
        print("works", flush=True)
        try:
            for one in pages:
                one.result()
        except KeyboardInterrupt:
            for one in pages:
                one.cancel()
            raise
"""


def test_ctrl_c_ends_a_program_of_many_threads_at_once(sandbox: Sandbox, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, json.dumps(sandbox.account), json.dumps(SHOP)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None and program.stdout.readline() == "works\n"
        begun = time.monotonic()
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
        took = time.monotonic() - begun
    assert said.rstrip().endswith("KeyboardInterrupt") and took < 20, (took, said)
    # The next one has the sessions at once.
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path / "records")) as agent, agent.open_pool("shop", size=2, **SHOP) as pool:
        held = [pool.acquire(timeout=10) for _ in range(2)]
        assert len({lease.session_id for lease in held}) == 2
    assert sandbox.charges() == 2


def test_a_thread_that_dies_with_a_lease_and_a_block_that_raises_keep_none(sandbox: Sandbox) -> None:
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=1, **SHOP) as pool:

        def dies() -> None:
            lease = pool.acquire(target="shop.example")
            raise ValueError(lease.session_id)

        # The exception of a thread is printed, and gone.
        before, threading.excepthook = threading.excepthook, lambda args: None
        try:
            thread = threading.Thread(target=dies)
            thread.start()
            thread.join()
        finally:
            threading.excepthook = before
        del thread
        with pytest.raises(ValueError, match="of the page"), pool.acquire(timeout=10) as lease:
            raise ValueError("of the page")
        assert not lease.valid
        pool.acquire(timeout=10).release()
    assert sandbox.charges() == 1


def test_tasks_that_are_cancelled_and_groups_that_fail_keep_no_lease(sandbox: Sandbox) -> None:
    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=2, **SHOP) as pool:

            async def page(number: int) -> None:
                async with pool.acquire(target="shop.example"):
                    await asyncio.sleep(0.1)
                    if number == 5:
                        raise ValueError("of the page")

            with pytest.raises(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    for number in range(20):
                        group.create_task(page(number))
            assert ((status := await pool.status()).leased, status.waiting) == (0, 0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3), pool.acquire(), pool.acquire(), pool.acquire():
                    raise AssertionError("there are two")
            # Those who are cancelled say so at once; what they waited for is somebody else's.
            held = [await pool.acquire() for _ in range(2)]
            waiting = [asyncio.create_task(pool.acquire()) for _ in range(50)]
            await asyncio.sleep(0.1)
            for task in waiting[:-1]:
                task.cancel()
            held.pop().release()
            async with await asyncio.wait_for(waiting[-1], 10):
                assert all(task.cancelled() for task in waiting[:-1])

    asyncio.run(life())
    assert sandbox.charges() == 2


def test_each_loop_and_each_kind_of_http_client_has_its_pool(sandbox: Sandbox) -> None:
    import aiohttp
    import httpx

    site = sandbox.ready["target_url"]
    exits: Counter[str] = Counter()
    with hopline.AgentClient(**sandbox.account) as agent, agent.open_pool("shop", size=2, **SHOP) as pool:
        for _ in range(4):
            with pool.acquire(target="shop.example") as lease:
                client = lease.data.setdefault("httpx", httpx.Client(**lease.proxy.for_httpx(), trust_env=False))
                answer = client.get(site)
                assert lease.observe(answer) == "keep"
                exits[answer.json()["address"]] += 1
            with pool.acquire(target="shop.example") as lease:
                closed = f"http://127.0.0.1:{9}/"
                seen: Any
                try:
                    seen = http().get(closed, **lease.proxy.for_requests(), timeout=5)
                except requests.RequestException as error:
                    seen = error
                assert lease.observe(seen) == "keep", seen

    async def life() -> None:
        async with hopline.AsyncAgentClient(**sandbox.account) as agent, agent.open_pool("tasks", size=2, **SHOP) as pool:

            async def page() -> None:
                async with pool.acquire(target="shop.example") as lease:
                    async with aiohttp.ClientSession() as client, client.get(site, **lease.proxy.for_aiohttp()) as answer:
                        assert lease.observe(answer) == "keep"
                        exits[(await answer.json())["address"]] += 1

            await asyncio.gather(*(page() for _ in range(20)))

    asyncio.run(life())
    asyncio.run(life())
    assert sum(exits.values()) == 44 and sandbox.charges() <= 2 + 2 + 2
