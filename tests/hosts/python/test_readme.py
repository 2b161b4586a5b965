"""The programs of the README and of the site's pages, as they are printed, each in an empty folder: run, killed and run again. Their types are a check
of `cargo xtask test` of its own."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT
from sandbox import Sandbox

README = (ROOT / "bindings-python" / "README.md").read_text()
SHOWN = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGES = ROOT / "core" / "docs" / "programs" / "python"
THROUGH = ["through_httpx", "through_requests", "through_curl_cffi", "through_aiohttp"]
PROGRAMS = [SHOWN[0], *((PAGES / f"{name}.py").read_text() for name in ("purchase", "tasks", "pool", "reseller", "shortest", *THROUGH))]
FIRST_CALL, PURCHASE, TASKS, POOL, RESELLER, SHORTEST = range(6)


def start(number: int, sandbox: Sandbox, folder: Path, *arguments: str, within: Sequence[str] = ()) -> "subprocess.Popen[str]":
    (folder / "program.py").write_text(PROGRAMS[number])
    account = {"HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}
    account |= {"HOPLINE_BACKEND_URL": sandbox.ready["backend_url"]}
    account |= {"HOPLINE_USERNAME": sandbox.ready["username"], "HOPLINE_PASSWORD": sandbox.ready["password"]}
    run = [*within, sys.executable, "program.py", *arguments]
    return subprocess.Popen(run, cwd=folder, env=os.environ | account, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ran(number: int, sandbox: Sandbox, folder: Path, *arguments: str) -> str:
    """The output of a program, which is to end well."""
    process = start(number, sandbox, folder, *arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and out and not err, err
    return out


def killed(number: int, sandbox: Sandbox, folder: Path, operation: str, *arguments: str) -> None:
    """Starts a program, and kills it once the service has done an operation."""
    process = start(number, sandbox, folder, *arguments)
    while True:
        # Looked at first: it may come to the operation and to its end between the two.
        is_over = process.poll() is not None
        if sandbox.times(operation):
            break
        assert not is_over, process.communicate()
        time.sleep(0.01)
    process.kill()
    process.communicate()


def test_each_program_of_the_readme_and_of_the_pages_is_run() -> None:
    assert SHOWN == [PROGRAMS[FIRST_CALL], PROGRAMS[SHORTEST]]
    pages = sorted(f"{name}.py" for name in ("pool", "purchase", "reseller", "shortest", "tasks", *THROUGH))
    # Those of crawlers and of ports, and the examples, are run by the tests of these.
    assert sorted(path.name for path in PAGES.iterdir() if not path.name.startswith(("crawl_", "example_", "port_"))) == pages


def test_the_shortest_program_fetches_a_page_and_buys_anew_once_its_session_is_over(sandbox: Sandbox, tmp_path: Path) -> None:
    site = sandbox.ready["target_url"]
    first, again = (ran(SHORTEST, sandbox, tmp_path, site) for _ in range(2))
    assert first == again == "200 for 2 USD\n"
    assert sum(bool(line.strip()) for line in PROGRAMS[SHORTEST].splitlines()) <= 12
    assert sandbox.charges() == 2 and {session["status"] for session in sandbox.state()["sessions"]} == {"terminated"}


def test_the_shortest_program_goes_on_with_its_purchase_after_a_kill(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.fault("get_session", kind="delay", ms=15_000)  # so that it is killed before it goes on
    killed(SHORTEST, sandbox, tmp_path, "create_session", sandbox.ready["target_url"])
    assert ran(SHORTEST, sandbox, tmp_path, sandbox.ready["target_url"]) == "200 for 2 USD\n"
    assert sandbox.charges() == 1


@pytest.mark.parametrize("number", [FIRST_CALL, PURCHASE, TASKS, RESELLER])
def test_a_program_of_the_readme_runs_twice_in_a_row_and_buys_once(number: int, sandbox: Sandbox, tmp_path: Path) -> None:
    first = ran(number, sandbox, tmp_path)
    paid = sandbox.charges()
    process = start(number, sandbox, tmp_path)
    again, err = process.communicate(timeout=120)
    assert sandbox.charges() == paid == {FIRST_CALL: 0, PURCHASE: 1, TASKS: 5, RESELLER: 0}[number]
    if number == PURCHASE:
        assert "is ready at" in first and "[redacted]" in first
        assert process.returncode == 1 and "is over; nothing was bought" in err
        return
    assert process.returncode == 0 and not err, err
    if number == TASKS:
        assert first.count("is ready") == 5 and again.count("is over") == 5
    if number == RESELLER:
        assert all(told in first for told in ("is ready\na proxy at 127.", "purchase", "renewal")) and "is ended" in again
        assert [sandbox.times(f"{what}_static_order") for what in ("create", "renew", "cancel")] == [1, 1, 1]
    assert all(session["status"] == "terminated" for session in sandbox.state()["sessions"])


@pytest.mark.parametrize(
    ("operation", "then"), [("create_session", "get_session"), ("get_session", "rotate_session"), ("rotate_session", "get_session_health")]
)
def test_the_program_that_buys_goes_on_with_its_purchase_after_a_kill(
    operation: str, then: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.fault(then, kind="delay", ms=15_000)  # so that it is killed before it goes on
    killed(PURCHASE, sandbox, tmp_path, operation)
    out = ran(PURCHASE, sandbox, tmp_path)
    [session] = sandbox.state()["sessions"]
    assert sandbox.charges() == 1 and f"{session['session_id']} is ready at" in out and session["status"] == "terminated"


def test_the_program_of_tasks_goes_on_with_its_purchases_after_a_kill(sandbox: Sandbox, tmp_path: Path) -> None:
    killed(TASKS, sandbox, tmp_path, "create_session")
    assert ran(TASKS, sandbox, tmp_path).count("job-") >= 5
    assert sandbox.charges() == 5 and {session["status"] for session in sandbox.state()["sessions"]} == {"terminated"}


@pytest.mark.parametrize("operation", ["list_static_orders", "renew_static_order"])
def test_the_program_of_the_reseller_makes_nothing_twice_after_a_kill(operation: str, sandbox: Sandbox, tmp_path: Path) -> None:
    killed(RESELLER, sandbox, tmp_path, operation)
    process = start(RESELLER, sandbox, tmp_path)
    out, err = process.communicate(timeout=120)
    # A write that was cut off is in doubt, and the program says so. Otherwise it goes on to the end.
    assert (process.returncode == 0 and not err) or "settle" in err, err
    assert [sandbox.times(what) for what in ("create_user", "create_static_order")] == [1, 1]
    # The program may have been killed just as the renewal was to be sent.
    never_sent = operation == "list_static_orders" and "settle" in err
    assert sandbox.times("renew_static_order") in ([0, 1] if never_sent else [1])


def test_the_program_with_a_pool_shares_its_sessions_with_those_that_come_after_it(sandbox: Sandbox, tmp_path: Path) -> None:
    site = sandbox.ready["target_url"]
    assert ran(POOL, sandbox, tmp_path) == "0 sessions are ready None\n" and sandbox.charges() == 0
    for _ in range(2):
        assert ran(POOL, sandbox, tmp_path, site, site) == f"{site} 200 keep\n" * 2 + "1 sessions are ready None\n"
    assert [session["status"] for session in sandbox.state()["sessions"]] == ["active"] and sandbox.charges() == 1


@pytest.mark.parametrize("number", range(SHORTEST + 1, SHORTEST + 1 + len(THROUGH)))
def test_the_programs_whose_http_client_sends_through_a_pool_fetch_pages(number: int, sandbox: Sandbox, tmp_path: Path) -> None:
    pages = [f"{sandbox.ready['target_url']}{number}" for number in range(6)]
    assert ran(number, sandbox, tmp_path, *pages).splitlines() == [f"{page} 200" for page in pages]
    assert 1 <= sandbox.charges() <= 3 and len(sandbox.visits()) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_the_program_with_a_pool_reads_many_pages_with_few_descriptors(sandbox: Sandbox, tmp_path: Path) -> None:
    site = sandbox.ready["target_url"]
    started = start(POOL, sandbox, tmp_path, *[site] * 1500, within=["sh", "-c", 'ulimit -n 1024; exec "$0" "$@"'])
    out, err = started.communicate(timeout=500)
    assert (started.returncode, err) == (0, "") and out.count(f"{site} 200 keep\n") == 1500, (out[-1000:], err)
    assert sandbox.charges() == 1
