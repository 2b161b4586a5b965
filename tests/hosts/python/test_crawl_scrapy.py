"""Scrapy over a pool: no page is lost, and a crawl that can't go on ends by itself and says why."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import until
from conftest import ROOT
from crawling import POOL, CookieSite, Target, last_line, ran_page, target

PROGRAM = ROOT / "tests" / "hosts" / "python" / "crawl_scrapy.py"


def start(site: Target, folder: Path, pages: int, *, pool: dict[str, Any] | None = None, **told: Any) -> "subprocess.Popen[str]":
    """Begins a crawl. Words in capitals are Scrapy's settings."""
    client = {**site.sandbox.account, "store": str(folder / "records"), "daily_cap_usd": 100}
    settings = {name: told.pop(name) for name in list(told) if name.isupper()}
    settings |= {"HOPLINE_POOL": POOL | (pool or {}), "HOPLINE_CLIENT": client}
    # The pool stands in for a proxy of the environment.
    env = os.environ | ({"http_proxy": told["proxy"], "https_proxy": told["proxy"], "no_proxy": "127.0.0.1:"} if "proxy" in told else {})
    run = [sys.executable, str(PROGRAM), json.dumps({"pages": pages, "url": site.url, "settings": settings} | told)]
    return subprocess.Popen(run, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(crawl: "subprocess.Popen[str]") -> tuple[dict[str, Any], str]:
    """The end of a crawl, and its log."""
    out, log = crawl.communicate(timeout=300)
    assert crawl.returncode == 0 and "Traceback" not in log and "Unclosed" not in log, log
    return last_line(out), log


def test_no_page_is_lost_and_an_exit_that_was_blocked_is_used_no_more(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        site.rules(block_after=10)
        told, log = ended(start(site, tmp_path, 60))
        assert sorted(told["got"]) == sorted(f"p{page}" for page in range(60)) and not told["failed"], log
        site.check_pages(60)
        stats = told["stats"]
        blocks = sum(visit["status"] == 403 for visit in site.visits())
        assert stats["finish_reason"] == "finished" and stats["hopline/lease_count"] == 60 + blocks
        assert stats["hopline/block_count"] == stats["retry/reason_count/hopline blocked 403"] == blocks
        assert stats["hopline/exit_count"] == len({visit["exit"] for visit in site.visits()})


@pytest.mark.parametrize(("delay", "pages"), [(0.1, 20), (3, 4)])
def test_nothing_is_lost_behind_a_delay_that_is_longer_than_a_request(delay: float, pages: int, tmp_path: Path) -> None:
    with target(tmp_path) as site:
        # Four requests wait in the delay at a time, for a pool of three.
        told, log = ended(start(site, tmp_path, pages, DOWNLOAD_DELAY=delay, DOWNLOAD_DELAY_JITTER=0, RANDOMIZE_DOWNLOAD_DELAY=False, HOPLINE_TIMEOUT=60))
        assert sorted(told["got"]) == sorted(f"p{page}" for page in range(pages)) and not told["failed"], log
        assert len(site.visits()) == pages and site.sandbox.charges() <= 3
        # The lease is taken behind the delay, where one request follows the other.
        assert told["stats"]["elapsed_time_seconds"] >= delay * (pages - 1)


def test_a_pool_that_is_held_ends_the_crawl_with_the_reason_and_a_resumed_one_gets_each_page(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        site.sandbox.control("account", {"denied": ["create_session"]})
        told, log = ended(start(site, tmp_path, 12, JOBDIR="job"))
        assert told["stats"]["finish_reason"] == "hopline_account" and "since the account may not buy" in log
        assert (told["got"], told["failed"], site.sandbox.charges()) == ([], [], 0)
        site.sandbox.control("account", {"denied": []})
        again, log = ended(start(site, tmp_path, 12, JOBDIR="job"))
        assert again["stats"]["finish_reason"] == "finished" and sorted(again["got"]) == sorted(f"p{page}" for page in range(12)), log


def test_a_balance_that_is_empty_and_comes_back_costs_no_page(tmp_path: Path) -> None:
    with target(tmp_path, "--balance", "0") as site:
        crawl = start(site, tmp_path, 12)
        with hopline.AgentClient(**site.sandbox.account, store=hopline.FolderStore(tmp_path / "records")) as agent:
            until(lambda: any(pool.hold and pool.hold.reason == "balance" for pool in agent.list_pools()))
            site.sandbox.control("balance", {"amount": "100"})
            # So that nobody waits for the next trial.
            with agent.join_pool("shop") as pool:
                pool.resume()
        told, log = ended(crawl)
        assert told["stats"]["finish_reason"] == "finished" and sorted(told["got"]) == sorted(f"p{page}" for page in range(12)), log


def test_a_balance_that_stays_empty_ends_the_crawl_within_its_patience(tmp_path: Path) -> None:
    with target(tmp_path, "--balance", "0") as site:
        told, log = ended(start(site, tmp_path, 12, HOPLINE_TIMEOUT=2, ROBOTSTXT_OBEY=True))
        assert told["stats"]["finish_reason"] == "hopline_balance" and "since the balance is too low" in told["stats"]["hopline/closed"]
        assert (told["got"], told["failed"], site.visits()) == ([], [], []), log


def test_a_crawl_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        crawl = start(site, tmp_path, 40, JOBDIR="job", DOWNLOAD_DELAY=0.05)
        until(lambda: len(site.visits()) >= 5)
        crawl.send_signal(signal.SIGINT)
        first, log = ended(crawl)
        assert first["stats"]["finish_reason"] == "shutdown" and len(first["got"]) < 40, log
        again, log = ended(start(site, tmp_path, 40, JOBDIR="job"))
        assert sorted(first["got"] + again["got"]) == sorted(f"p{page}" for page in range(40)), log
        assert site.sandbox.charges() <= 3 and "password" not in "".join(str(path.read_bytes()) for path in (tmp_path / "job").rglob("*") if path.is_file())


def test_a_crawl_that_is_killed_leaves_its_sessions_to_the_next(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        crawl = start(site, tmp_path, 40, DOWNLOAD_DELAY=0.05)
        until(lambda: len(site.visits()) >= 5)
        crawl.kill()
        crawl.communicate(timeout=60)
        exits = {visit["exit"] for visit in site.visits()}
        told, log = ended(start(site, tmp_path, 10))
        assert sorted(told["got"]) == sorted(f"p{page}" for page in range(10)) and not told["failed"], log
        assert exits <= {visit["exit"] for visit in site.visits()} and site.sandbox.charges() <= 3
        with hopline.AgentClient(**site.sandbox.account, store=hopline.FolderStore(tmp_path / "records")) as agent:
            [pool] = agent.list_pools()
            assert pool.free_in_store == site.sandbox.charges() and not pool.in_doubt, pool


def test_where_everybody_is_blocked_nothing_more_is_bought_and_few_exits_are_changed(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        site.rules(block_all_ms=3_600_000)
        told, log = ended(start(site, tmp_path, 8, HOPLINE_TIMEOUT=3, RETRY_TIMES=1))
        assert told["got"] == [] and len(told["failed"]) == 8 and told["stats"]["finish_reason"] == "finished"
        assert site.sandbox.charges() <= 3 and site.sandbox.times("rotate_session") <= 4
        assert len(site.visits()) <= 8 and "rest" in " ".join(told["failed"]), log


def test_cookies_and_cookiejars_keep_to_an_exit_and_a_block_is_seen_in_a_page_that_is_compressed(tmp_path: Path) -> None:
    with target(tmp_path) as site, CookieSite() as shop:
        told, log = ended(start(site, tmp_path, 30, url=shop.url, jars=3, captcha="captcha", proxy="http://127.0.0.1:9", post=7, HTTPCACHE_ENABLED=True))
        # A block that is a redirect is not followed, none is kept by a cache, and what may have had an effect is not sent again.
        assert sorted(told["got"]) == sorted(f"p{page}" for page in range(30) if page != 7), log
        assert told["failed"] == [f"IgnoreRequest: {shop.url}/p7 was a block at each attempt"]
        assert told["stats"]["hopline/block_count"] == 3
        assert Counter(path for _, path, _ in shop.visits) == Counter({f"/p{page}": 1 for page in range(30)} | {"/p5": 2, "/p6": 2})
        exits: dict[int, list[str]] = {}
        for exit, path, cookie in shop.visits:
            assert cookie in (None, f"exit={exit}"), "a cookie came by another exit"
            exits.setdefault(int(path[2:]) % 3, []).append(exit)
        # Only the three blocks change an exit.
        assert all(sum(one != next for one, next in pairwise(of_jar)) <= 3 for of_jar in exits.values()), exits
        assert len({cookie for *_, cookie in shop.visits}) > 2


def test_the_cookie_of_a_redirect_goes_to_the_page_that_looks_for_it(tmp_path: Path) -> None:
    with target(tmp_path) as site, CookieSite() as shop:
        told, log = ended(start(site, tmp_path, 9, url=f"{shop.url}/step"))
        assert sorted(told["got"]) == [f"p{page}?seen" for page in range(9)] and not told["failed"], log
        # The next hop may go by another exit, which gets that cookie only.
        assert all(f"exit={exit}" in (cookie or f"exit={exit}") or path.endswith("?seen") for exit, path, cookie in shop.visits)


def test_settings_that_are_wrong_end_the_crawl_and_nothing_goes_past_the_pool(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        for pool, said in (({"sise": 3}, "sise"), ({"protocol": "socks5"}, "speaks to HTTP proxies only")):
            told, log = ended(start(site, tmp_path, 3, pool=pool))
            assert told["stats"]["finish_reason"].startswith("hopline_") and said in log and told["got"] == []
        assert site.sandbox._ask("visits", None)["visits"] == [] and site.sandbox.charges() == 0


def test_the_program_of_the_page_fetches_each_url_once_over_two_runs(tmp_path: Path) -> None:
    with target(tmp_path) as site:
        urls = [f"{site.url}/p{page}" for page in range(3)]
        for expected in ([f"{url} 200" for url in urls], []):
            assert sorted(ran_page("crawl_scrapy", site, tmp_path, *urls).splitlines()) == ["ended: finished", *expected]
