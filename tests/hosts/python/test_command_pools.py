"""`hopline pool`: what it shows of pools, and that programs in other processes heed it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hopline
import pytest
from canned import until
from command_line import Shell
from conftest import BUY
from hopline._cli.main import main
from sandbox import Sandbox

SHOP: dict[str, Any] = {**BUY, "protocol": "http", "daily_cap_usd": 100}
WORKER = """
import json, sys, hopline
with hopline.AgentClient(store=hopline.FolderStore(sys.argv[1])) as agent, agent.open_pool("shop", size=4, **json.loads(sys.argv[2])) as pool:
    leases = []
    print("open", flush=True)
    for line in sys.stdin:
        if line == "release\\n":
            while leases:
                leases.pop().release()
        else:
            try:
                leases.append(pool.acquire(timeout=float(line)))
            except hopline.HoplineError as error:
                print(error.kind, flush=True)
                continue
        print(len(leases), flush=True)
"""


def environment(sandbox: Sandbox) -> dict[str, str]:
    return {**os.environ, "HOPLINE_BASE_URL": sandbox.ready["agent_url"], "HOPLINE_API_KEY": sandbox.ready["api_key"]}


def run(sandbox: Sandbox, *arguments: str, code: int = 0) -> str:
    """Returns the output of the command: standard output, or standard error after a failure. The output never has the key."""
    program = str(Path(sys.executable).with_name("hopline"))
    done = subprocess.run([program, *arguments], env=environment(sandbox), capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    said, other = (done.stdout, done.stderr) if code == 0 else (done.stderr, done.stdout)
    # A step that is taken is said on standard error.
    assert (other == "" or "--yes" in arguments) and said and sandbox.ready["api_key"] not in said
    return said


@pytest.mark.parametrize("mark", ["HOPLINE_BASE_URL", "HOPLINE_API_KEY", "HOPLINE_STORE"])
def test_space_around_what_the_environment_says_is_nothing(mark: str, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {**environment(sandbox), "HOPLINE_STORE": str(tmp_path)}
    for name, value in said.items():
        monkeypatch.setenv(name, f" {value}\r\n" if name == mark else value)
    assert main(["pool", "list"]) == 0


def test_a_variable_with_nothing_but_space_is_none(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**environment(sandbox), "HOPLINE_STORE": str(tmp_path), "HOPLINE_API_KEY": " \n"}.items():
        monkeypatch.setenv(name, value)
    assert main(["pool", "list"]) == 2


class Worker:
    """A program with a pool, in a process of its own."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        command = [sys.executable, "-c", WORKER, str(folder), json.dumps(SHOP)]
        self._process = subprocess.Popen(command, env=environment(sandbox), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._said() == "open"

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """Stops it as a debugger or a laptop's lid does."""
        self._process.send_signal(signal.SIGSTOP)

    def does(self, what: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def end(self) -> int:
        self._process.communicate(timeout=60)
        return self._process.returncode


def stale() -> None:
    """Waits until the worker reads the pool's record before a purchase: what it has read is good for a second."""
    time.sleep(1.1)


def living(sandbox: Sandbox) -> list[str]:
    return [session["session_id"] for session in sandbox.state()["sessions"] if session["status"] in ("creating", "active")]


def test_a_pool_of_another_program_is_shown_paused_resumed_and_drained(sandbox: Sandbox, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path)]
    assert run(sandbox, "pool", "list", *store) == "the store keeps no pool\n"
    worker = Worker(sandbox, tmp_path)
    assert [worker.does("30") for _ in range(2)] == ["1", "2"]
    sent = len(sandbox.requests())
    [shop] = json.loads(run(sandbox, "pool", "list", *store, "--json"))
    assert shop == {"name": "shop", "size": 4, "mine": 0, "with_others": 2, "free_in_store": 0, "in_doubt": 0, "hold": None}
    assert run(sandbox, "pool", "list", *store).splitlines()[1].split() == ["shop", "4", "0", "2", "0", "0"]
    status = json.loads(run(sandbox, "pool", "status", "shop", *store, "--json"))
    counts = {"size": 4, "mine": 0, "others": 2, "free": 0, "in_doubt": 0, "empty": 2}
    assert {name: status[name] for name in ("name", "hold", *counts)} == {"name": "shop", "hold": None, **counts}
    assert sorted(slot["session_id"] for slot in status["slots"]) == sorted(living(sandbox))
    assert run(sandbox, "pool", "pause", "shop", *store).startswith("shop is paused")
    assert len(sandbox.requests()) == sent  # none of this is the service's business

    stale()
    assert worker.does("1") == "unavailable" and sandbox.charges() == 2
    held = run(sandbox, "pool", "list", *store).splitlines()[1]
    assert held.endswith("paused: since it is paused; needs a caller")
    shown = run(sandbox, "pool", "status", "shop", *store).splitlines()
    assert shown[:2] == ["shop: 4 slots: 0 mine / 2 others / 0 free, 0 in doubt, 2 empty", "buys: no, paused: since it is paused; needs a caller"]
    assert all(" session  ses_" in line for line in shown[2:]) and len(shown) == 4
    assert run(sandbox, "pool", "resume", "shop", *store, "--yes").startswith("shop buys again")
    assert worker.does("90") == "3" and sandbox.charges() == 3

    # The worker, which has them, hears of it within 4 s and terminates them when its grace is over.
    assert json.loads(run(sandbox, "pool", "drain", "shop", *store, "--yes", "--json")) == {"name": "shop", "done": "drain", "ended": 3, "living": []}
    assert not living(sandbox)
    assert worker.does("30") in ("cancelled", "misuse")
    assert worker.does("release") == "0"
    assert worker.end() == 0 and sandbox.charges() == 3
    assert "drain" in run(sandbox, "pool", "list", *store)


@pytest.mark.parametrize("is_drained", [False, True])
def test_what_no_program_has_is_terminated_at_once_and_only_by_drain(is_drained: bool, sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path), account="a") as agent:
        with agent.open_pool("shop", size=3, keep_ready=2, **SHOP) as pool:
            pool.wait_ready(2)
        assert [known.name for known in agent.list_pools()] == ["shop"]
    if is_drained:
        said = run(sandbox, "pool", "drain", "shop", "--yes", "--store", str(tmp_path), "--account", "a")
        assert said == "shop is drained and stays paused: 2 sessions terminated\n"
    else:
        assert "does not belong to a pool in the store" in run(sandbox, "pool", "drain", "shop", "--yes", "--store", str(tmp_path), code=1)
        run(sandbox, "pool", "pause", "shop", "--store", str(tmp_path), "--account", "a")
    assert len(living(sandbox)) == (0 if is_drained else 2)


def test_a_drain_says_which_sessions_of_a_program_that_is_stopped_still_live(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(sandbox).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("hopline._cli.pools._PROGRAMS_END", 1)
    with Worker(sandbox, tmp_path) as worker:
        assert worker.does("30") == "1"
        worker.stop()
        assert main(["pool", "drain", "shop", "--yes", "--store", str(tmp_path)]) == 0
        [session] = living(sandbox)
        assert capsys.readouterr().out.startswith(f"shop is drained and stays paused: 0 sessions terminated, 1 still living: {session};")
    # No program has it any more.
    assert run(sandbox, "pool", "drain", "shop", "--yes", "--store", str(tmp_path)) == "shop is drained and stays paused: 1 session terminated\n"


def test_another_pools_slots_are_none_of_this_one(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent:
        for name, size in (("shop", 2), ("shop2", 1)):
            with agent.open_pool(name, size=size, keep_ready=size, **SHOP) as pool:
                pool.wait_ready(size)
    store = ["--store", str(tmp_path)]
    status = json.loads(run(sandbox, "pool", "status", "shop", *store, "--json"))
    assert (status["free"], [slot["intent"] for slot in status["slots"]]) == (2, ["pool/shop/0#1", "pool/shop/1#1"])
    assert json.loads(run(sandbox, "pool", "drain", "shop", *store, "--yes", "--json"))["ended"] == 2 and len(living(sandbox)) == 1


def test_a_pool_that_is_joined_lends_and_buys_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    stores = [hopline.FolderStore(tmp_path) for _ in range(2)]
    with hopline.AgentClient(**sandbox.account, store=stores[0]) as agent, hopline.AgentClient(**sandbox.account, store=stores[1]) as other:
        with agent.open_pool("shop", size=2, **SHOP) as pool, other.join_pool("shop") as joined:
            with pytest.raises(hopline.HoplineError) as caught:
                joined.acquire(timeout=1)
            assert caught.value.effect == "none" and sandbox.charges() == 0
            assert pool.acquire().slot in (0, 1) and joined.status(everywhere=True).with_others == 1


def test_a_failure_is_one_sentence(sandbox: Sandbox, tmp_path: Path) -> None:
    unknown = run(sandbox, "pool", "status", "none", "--store", str(tmp_path), code=1)
    assert unknown.startswith("hopline: pool status: `name` does not belong to a pool in the store; ") and unknown.count("\n") == 1
    missing = tmp_path / "missing"
    no_folder = [f"hopline: there is no folder `{missing}`", f"  hopline store init --store {missing}"]
    assert run(sandbox, "pool", "list", "--store", str(missing), code=1).splitlines() == no_folder
    assert not missing.exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("of somebody else")
    assert len(run(sandbox, "pool", "list", "--store", str(tmp_path / "other"), code=1).splitlines()) == 1
    assert "--store FOLDER or HOPLINE_STORE is needed" in run(sandbox, "pool", "list", code=2)
    assert "did you mean `pause`?" in run(sandbox, "pool", "pauze", "shop", code=2)
    nothing = {name: value for name, value in os.environ.items() if not name.startswith("HOPLINE_")}
    command = [sys.executable, "-m", "hopline", "pool", "list", "--store", str(tmp_path), "--base-url", "https://api.example/v1"]
    done = subprocess.run(command, env=nothing, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "HOPLINE_API_KEY" in done.stderr


def test_a_drain_says_how_many_sessions_are_static(sandbox: Sandbox, tmp_path: Path) -> None:
    static = {**SHOP, "session_type": "static", "product_no": "static-us"}
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent, agent.open_pool("dc", size=2, keep_ready=2, **static) as pool:
        pool.wait_ready(2)
    drain = ("pool", "drain", "dc", "--store", str(tmp_path))
    assert "terminates its 2 sessions: 0 with programs that run, 2 static, which stay without --static; unused" in run(sandbox, *drain, code=2)
    assert "2 static, which are terminated too, and not refunded; unused" in run(sandbox, *drain, "--static", code=2)
    assert len(living(sandbox)) == 2


def test_drain_and_resume_say_what_they_do_and_ask(sandbox: Sandbox, tmp_path: Path) -> None:
    with hopline.AgentClient(**sandbox.account, store=hopline.FolderStore(tmp_path)) as agent, agent.open_pool("shop", size=2, keep_ready=2, **SHOP) as pool:
        pool.wait_ready(2)
    store = ["--store", str(tmp_path)]
    run(sandbox, "pool", "pause", "shop", *store)
    said = run(sandbox, "pool", "resume", "shop", *store, code=2)
    assert "may spend money at once; it had stopped: paused" in said and "--yes agrees beforehand" in said
    assert json.loads(run(sandbox, "pool", "list", *store, "--json"))[0]["hold"] is not None
    asked = Shell(sandbox, tmp_path)
    drain = asked.run("pool", "drain", "shop", "--static", code=2).err
    assert "terminates its 2 sessions: 0 with programs that run, none of them static; unused" in drain
    code, seen = asked.at_terminal("pool", "drain", "shop", answers=("",))
    assert code == 1 and "none of them static" in seen and len(living(sandbox)) == 2
    code, _ = asked.at_terminal("pool", "drain", "shop", answers=("y",))
    assert code == 0 and not living(sandbox)
